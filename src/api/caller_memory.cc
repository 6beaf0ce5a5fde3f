#include "api/caller_memory.h"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <onesum/error.h>

#include "api/overlap.h"
#include "api/tensor_state.h"

namespace onesum::api {
namespace {

// All tensors of a call into the caller's memory.
class Memory {
 public:
  Memory(const CallTraits& traits, const Pairs& pairs, const Device& defaults)
      : traits_(traits), defaults_(defaults) {
    for (std::size_t i = 0; i < pairs.size(); ++i) add(i, pairs[i]);
  }

  // A result may only be a replica of its own value, in place.
  void refuse_overlaps() {
    const auto overlap = OverlapCheck(uses_).find(bases_);
    if (!overlap) return;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} and {} share memory; a result may only be exactly the replica of its own pair on "
                    "its own device",
                    names(overlap->first), names(overlap->second)));
  }

 private:
  void add(std::size_t pair, const Pair& tensors) {
    const DistributedValues& results = *tensors.results;
    std::vector<bool> replaced(tensors.value->size());
    for (std::size_t d = 0; d < results.size(); ++d) {
      const int replica = in_place_replica(*tensors.value, results.value(d), d, defaults_);
      if (replica >= 0) replaced[static_cast<std::size_t>(replica)] = true;
    }
    for (std::size_t r = 0; r < replaced.size(); ++r) add(pair, tensors.value->value(r), false, replaced[r]);
    for (const Value& result : results.values()) add(pair, result, true, false);
  }

  void add(std::size_t pair, const Value& value, bool is_result, bool is_replaced) {
    if (const auto* tensor = std::get_if<Tensor>(&value)) return add(pair, *tensor, is_result, is_replaced);
    const auto& slices = std::get<IndexedSlices>(value);
    add(pair, slices.values, is_result, is_replaced);
    add(pair, slices.indices, is_result, is_replaced);
  }

  void add(std::size_t pair, const Tensor& tensor, bool is_result, bool is_replaced) {
    uses_.push_back({0, tensor.bytes(), is_result, is_replaced});
    bases_.push_back(static_cast<std::byte*>(tensor.state()->memory));
    pairs_.push_back(pair);
    tensors_.push_back(tensor);
  }

  std::string names(std::size_t slot) const {
    return fmt::format("{}: {} on {}", planner::name_of_pair(traits_.kind, pairs_[slot]),
                       uses_[slot].is_result ? "result" : "replica",
                       tensors_[slot].device().canonical(defaults_).to_string());
  }

  const CallTraits& traits_;
  const Device& defaults_;
  std::vector<OverlapCheck::Use> uses_;
  std::vector<std::byte*> bases_;
  std::vector<std::size_t> pairs_;
  std::vector<Tensor> tensors_;
};

}  // namespace

void refuse_overlaps(const CallTraits& traits, const Pairs& pairs, const Device& defaults) {
  Memory(traits, pairs, defaults).refuse_overlaps();
}

}  // namespace onesum::api
