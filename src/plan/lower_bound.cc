#include "plan/lower_bound.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

using CountByRank = std::map<std::int32_t, std::uint64_t>;

CountByRank count_by_rank(std::span<const std::int32_t> devices, std::span<const std::int32_t> device_rank) {
  CountByRank counts;
  for (const std::int32_t device : devices) ++counts[device_rank[static_cast<std::size_t>(device)]];
  return counts;
}

// Whether what `from` has must get to another rank in `to`.
bool has_elsewhere(const CountByRank& to, std::int32_t from) {
  return to.size() > 1 || (to.size() == 1 && !to.contains(from));
}

class Bound {
 public:
  Bound(const Pack& pack, std::span<const std::int32_t> device_rank, Element input, std::size_t elements,
        const CostConstants& constants)
      : constants_(constants),
        ranks_(std::set<std::int32_t>(device_rank.begin(), device_rank.end()).size()),
        replicas_(count_by_rank(pack.replicas, device_rank)),
        results_(count_by_rank(pack.destinations, device_rank)),
        input_bytes_(elements * size_of(input)),
        output_bytes_(elements * size_of(pack.output)),
        least_bytes_(elements * std::min({size_of(input), size_of(pack.accumulator), size_of(pack.output)})) {
  }

  LowerBound find() const {
    LowerBound bound{0, "nothing to do"};
    if (results_.empty()) return bound;
    bound = memory();
    const double bytes = link_bytes();
    if (bytes < 0) return bound;
    const double waiting = constants_.across.latency + 2 * constants_.step;
    const double carrying = constants_.across.seconds_per_byte * bytes;
    if (waiting + carrying <= bound.seconds) return bound;
    return {waiting + carrying,
            waiting > carrying ? "latency" : fmt::format("links: {:.0f} bytes from one rank", bytes)};
  }

 private:
  // Bytes over the busiest link; negative: no rank needs another.
  double link_bytes() const {
    const bool together =
        replicas_.size() == 1 && results_.size() == 1 && replicas_.begin()->first == results_.begin()->first;
    if (together) return -1;
    const bool share =
        std::ranges::any_of(replicas_, [&](const auto& r) { return results_.contains(r.first); });
    const double messages = static_cast<double>(replicas_.size() + results_.size() - (share ? 2 : 1));
    const auto least = static_cast<double>(least_bytes_);
    return std::max(least, messages * least / static_cast<double>(ranks_));
  }

  LowerBound memory() const {
    std::uint64_t most = 0;
    std::int32_t busiest = 0;
    std::set<std::int32_t> involved;
    for (const auto& [rank, count] : replicas_) involved.insert(rank);
    for (const auto& [rank, count] : results_) involved.insert(rank);
    for (const std::int32_t rank : involved) {
      const std::uint64_t bytes = traffic_of(rank);
      if (bytes <= most) continue;
      most = bytes;
      busiest = rank;
    }
    return {constants_.step + constants_.gamma * static_cast<double>(most),
            fmt::format("memory: rank {} moves {} bytes", busiest, most)};
  }

  std::uint64_t traffic_of(std::int32_t rank) const {
    const auto count = [&](const CountByRank& counts) {
      const auto entry = counts.find(rank);
      return entry == counts.end() ? std::uint64_t{0} : entry->second;
    };
    std::uint64_t bytes = count(replicas_) * input_bytes_ + count(results_) * output_bytes_;
    if (count(replicas_) > 0 && has_elsewhere(results_, rank)) bytes += least_bytes_;
    if (count(results_) > 0 && has_elsewhere(replicas_, rank)) bytes += least_bytes_;
    return bytes;
  }

  const CostConstants& constants_;
  std::size_t ranks_;
  CountByRank replicas_;
  CountByRank results_;
  std::uint64_t input_bytes_;
  std::uint64_t output_bytes_;
  std::uint64_t least_bytes_;
};

}  // namespace

LowerBound lower_bound(const Pack& pack, std::span<const std::int32_t> device_rank, Element input,
                       std::size_t elements, const CostConstants& constants) {
  if (pack.contract != Contract::kReduce) refuse("lower bound: expected a pack with Contract::kReduce");
  return Bound(pack, device_rank, input, elements, constants).find();
}

std::optional<LowerBound> lower_bound(const Plan& plan, const Sizes& sizes, const CostConstants& constants) {
  struct Kind {
    Pack pack;
    Element input;
    std::size_t elements;
  };
  std::vector<Kind> kinds;
  for (std::size_t p = 0; p < plan.packs.size(); ++p) {
    if (plan.packs[p].contract != Contract::kReduce) return std::nullopt;
    Kind kind{plan.packs[p], input_of(plan, p), sizes.pack_lengths[p]};
    kind.pack.split.clear();
    const auto alike = std::ranges::find_if(
        kinds, [&](const Kind& other) { return other.pack == kind.pack && other.input == kind.input; });
    if (alike == kinds.end()) {
      kinds.push_back(std::move(kind));
    } else {
      alike->elements += kind.elements;
    }
  }
  LowerBound slowest{0, "nothing to do"};
  for (const Kind& kind : kinds) {
    LowerBound bound = lower_bound(kind.pack, plan.device_rank, kind.input, kind.elements, constants);
    if (bound.seconds > slowest.seconds) slowest = std::move(bound);
  }
  return slowest;
}

Element input_of(const Plan& plan, std::size_t pack) {
  for (const Buffer& buffer : plan.buffers) {
    const bool is_input = buffer.role == Role::kInput || buffer.role == Role::kInOut;
    if (is_input && static_cast<std::size_t>(buffer.pack) == pack) return buffer.element;
  }
  return plan.packs[pack].accumulator;
}

}  // namespace onesum::plan
