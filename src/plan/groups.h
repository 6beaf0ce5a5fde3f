// The ranks that take part in the native collectives of a plan's groups.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

// A rank that owns devices of a group, and the first of them.
struct Member {
  std::int32_t rank = 0;
  std::int32_t device = 0;
  std::size_t devices = 0;  // how many
};

// Of groups whose devices exist and ascend (plan/well_formed.h).
class Groups {
 public:
  explicit Groups(const Plan& plan) {
    members_.reserve(plan.groups.size());
    for (const Group& group : plan.groups) members_.push_back(members_of(plan, group));
  }

  // Ascending by rank.
  const std::vector<Member>& members(std::int32_t group) const {
    return members_[static_cast<std::size_t>(group)];
  }

  // Null: the rank has no device in the group.
  const Member* find(std::int32_t group, std::int32_t rank) const {
    const std::vector<Member>& all = members(group);
    const auto found = std::ranges::lower_bound(all, rank, {}, &Member::rank);
    return found == all.end() || found->rank != rank ? nullptr : &*found;
  }

 private:
  static std::vector<Member> members_of(const Plan& plan, const Group& group) {
    std::vector<Member> all;
    for (const std::int32_t device : group.devices) all.push_back({plan.rank_of(device), device, 1});
    std::ranges::sort(all, {}, [](const Member& one) { return std::pair(one.rank, one.device); });
    std::vector<Member> members;
    for (const Member& one : all) {
      if (members.empty() || members.back().rank != one.rank) {
        members.push_back(one);
      } else {
        ++members.back().devices;
      }
    }
    return members;
  }

  std::vector<std::vector<Member>> members_;  // by group
};

}  // namespace onesum::plan
