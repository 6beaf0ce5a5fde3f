// Numbers from 0 for the ranks of a plan: those that own one of its devices or run one of its lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

class Ranks {
 public:
  explicit Ranks(const Plan& plan) : ranks_(plan.device_rank) {
    for (const Lane& lane : plan.lanes) ranks_.push_back(lane.rank);
    std::ranges::sort(ranks_);
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
    for (const Lane& lane : plan.lanes) of_lanes_.push_back(number_of(lane.rank));
  }

  std::size_t size() const noexcept { return ranks_.size(); }
  std::int32_t rank(std::size_t number) const { return ranks_[number]; }
  std::size_t of_lane(std::int32_t lane) const { return of_lanes_[static_cast<std::size_t>(lane)]; }

 private:
  std::size_t number_of(std::int32_t rank) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(ranks_, rank) - ranks_.begin());
  }

  std::vector<std::int32_t> ranks_;  // ascending
  std::vector<std::size_t> of_lanes_;
};

}  // namespace onesum::plan
