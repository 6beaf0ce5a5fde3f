// For tests: what the sample plans (plan/sample_plans.h) are written with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "plan/builder.h"
#include "plan/plan.h"
#include "plan/sample_plans.h"

namespace onesum::plan::sample {

inline std::vector<std::int32_t> one_worker(std::int32_t devices) {
  return std::vector<std::int32_t>(static_cast<std::size_t>(devices), 0);
}

inline std::vector<std::int32_t> worker_each(std::int32_t devices) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t i = 0; i < devices; ++i) ranks.push_back(i);
  return ranks;
}

inline Chunks chunk(std::int32_t i) { return {static_cast<std::uint32_t>(i), 1}; }

// A channel with the slot and view buffers that its messages need, by type.
class Link {
 public:
  Link(Builder& builder, std::int32_t pack, Channel channel)
      : builder_(&builder), pack_(pack), channel_(builder.add_channel(channel)) {}

  std::int32_t channel() const { return channel_; }
  std::int32_t slot(Element element) {
    const auto [entry, is_new] = slots_.emplace(element, 0);
    if (is_new) entry->second = builder_->slot(pack_, channel_, element);
    return entry->second;
  }
  std::int32_t view(Element element) {
    const auto [entry, is_new] = views_.emplace(element, 0);
    if (is_new) entry->second = builder_->view(pack_, channel_, element);
    return entry->second;
  }

 private:
  Builder* builder_;
  std::int32_t pack_;
  std::int32_t channel_;
  std::map<Element, std::int32_t> slots_, views_;
};

// Inputs and outputs of n devices; in place they are the same.
struct Ends {
  std::vector<std::int32_t> in, out;
  Ends(Builder& builder, std::int32_t n, const Types& types, bool in_place) {
    for (std::int32_t i = 0; i < n; ++i) {
      in.push_back(in_place ? builder.inout(0, i, types.input) : builder.input(0, i, types.input));
    }
    for (std::int32_t i = 0; i < n; ++i) {
      out.push_back(in_place ? in[static_cast<std::size_t>(i)] : builder.output(0, i));
    }
  }
};

inline std::int64_t divisor_of(std::int32_t n, const Types& types) { return types.mean ? n : 1; }

inline Split ragged(std::int32_t parts) { return {{SplitRule::kRagged, static_cast<std::uint32_t>(parts)}}; }

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace onesum::plan::sample
