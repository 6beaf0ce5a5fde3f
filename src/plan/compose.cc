#include "plan/compose.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

// Adds a name unless it is there already.
void list_name(std::string& list, std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) != names.end()) return;
  names.push_back(name);
  list += (names.size() == 1 ? "" : " + ") + name;
}

std::vector<const Plan*> pointers_to(std::span<const Plan> plans) {
  std::vector<const Plan*> pointers;
  for (const Plan& plan : plans) pointers.push_back(&plan);
  return pointers;
}

class Composition {
 public:
  Composition(std::span<const Plan* const> plans, LaneUse lanes, bool in_sequence)
      : plans_(plans), lane_use_(lanes), in_sequence_(in_sequence) {}

  Plan compose() {
    if (plans_.empty()) refuse("no plans to compose");
    whole_.device_rank = plans_.front()->device_rank;
    whole_.order.clear();
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i]->device_rank != whole_.device_rank) {
        refuse(fmt::format("plan {} is over other devices than plan 0", i));
      }
      list_name(whole_.algorithm, algorithms_, plans_[i]->algorithm);
      list_name(whole_.order, orders_, plans_[i]->order);
      append(*plans_[i]);
    }
    lay_out_operands(whole_);
    return std::move(whole_);
  }

 private:
  void append(const Plan& part) {
    first_pack_ = static_cast<std::int32_t>(whole_.packs.size());
    first_channel_ = static_cast<std::int32_t>(whole_.channels.size());
    first_buffer_ = static_cast<std::int32_t>(whole_.buffers.size());
    first_operand_ = static_cast<std::uint32_t>(whole_.operands.size());
    whole_.packs.insert(whole_.packs.end(), part.packs.begin(), part.packs.end());
    append_channels(part);
    append_groups(part);
    append_buffers(part);
    for (Operand operand : part.operands) {
      operand.buffer += first_buffer_;
      whole_.operands.push_back(operand);
    }
    append_lanes(part);
  }

  // A channel's number is made larger than those of earlier plans between the same two devices.
  void append_channels(const Plan& part) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> next = next_channel_number_;
    for (Channel channel : part.channels) {
      const std::pair ends(channel.from, channel.to);
      channel.number += next_channel_number_[ends];
      next[ends] = std::max(next[ends], channel.number + 1);
      whole_.channels.push_back(channel);
    }
    next_channel_number_ = std::move(next);
  }

  // Plans over the same devices share their groups.
  void append_groups(const Plan& part) {
    groups_.clear();
    for (const Group& group : part.groups) {
      const auto found = std::ranges::find(whole_.groups, group);
      groups_.push_back(static_cast<std::int32_t>(found - whole_.groups.begin()));
      if (found == whole_.groups.end()) whole_.groups.push_back(group);
    }
  }

  void append_buffers(const Plan& part) {
    std::int32_t next_temporary = next_temporary_;
    for (Buffer buffer : part.buffers) {
      buffer.pack += first_pack_;
      if (buffer.role == Role::kSlot || buffer.role == Role::kView) buffer.index += first_channel_;
      if (buffer.role == Role::kTemp) {
        buffer.index += next_temporary_;
        next_temporary = std::max(next_temporary, buffer.index + 1);
      }
      whole_.buffers.push_back(buffer);
    }
    next_temporary_ = next_temporary;
  }

  // Where each lane of a part goes: a new lane, or the next of its rank that this part does not use yet.
  std::vector<std::int32_t> place_lanes(const Plan& part) {
    std::vector<std::int32_t> places;
    std::map<std::int32_t, std::size_t> used;  // by rank
    for (const Lane& lane : part.lanes) {
      std::vector<std::int32_t>& of_rank = lanes_of_rank_[lane.rank];
      const std::size_t nth = lane_use_ == LaneUse::kShared ? used[lane.rank]++ : of_rank.size();
      if (nth == of_rank.size()) {
        of_rank.push_back(static_cast<std::int32_t>(whole_.lanes.size()));
        whole_.lanes.push_back({lane.rank, {}});
      }
      places.push_back(of_rank[nth]);
    }
    return places;
  }

  std::vector<Step>& steps_of(std::int32_t lane) {
    return whole_.lanes[static_cast<std::size_t>(lane)].steps;
  }

  void append_lanes(const Plan& part) {
    std::vector<std::size_t> lengths;  // before this part
    for (const Lane& lane : whole_.lanes) lengths.push_back(lane.steps.size());
    const std::vector<std::int32_t> places = place_lanes(part);
    if (in_sequence_) {
      for (const std::int32_t place : places) wait_for_all(place, lengths);
    }
    std::vector<std::int32_t> first_step;  // of this part, in the lane where each of its lanes goes
    for (const std::int32_t place : places)
      first_step.push_back(static_cast<std::int32_t>(steps_of(place).size()));
    for (std::size_t i = 0; i < part.lanes.size(); ++i) {
      for (Step step : part.lanes[i].steps) {
        step.first_operand += first_operand_;
        if (step.channel >= 0) step.channel += first_channel_;
        if (step.pack >= 0) step.pack += first_pack_;
        if (step.group >= 0) step.group = groups_[static_cast<std::size_t>(step.group)];
        if (step.op == Op::kWait) {
          const auto awaited = static_cast<std::size_t>(step.lane);
          step.lane = places[awaited];
          step.step += first_step[awaited];
        }
        steps_of(places[i]).push_back(step);
      }
    }
  }

  // A lane waits for the last step that every other lane of its rank had before this part.
  void wait_for_all(std::int32_t lane, const std::vector<std::size_t>& lengths) {
    for (const std::int32_t other : lanes_of_rank_[whole_.lane(lane).rank]) {
      const auto number = static_cast<std::size_t>(other);
      if (other == lane || number >= lengths.size() || lengths[number] == 0) continue;
      Step wait;
      wait.op = Op::kWait;
      wait.lane = other;
      wait.step = static_cast<std::int32_t>(lengths[number]) - 1;
      steps_of(lane).push_back(wait);
    }
  }

  std::span<const Plan* const> plans_;
  LaneUse lane_use_;
  bool in_sequence_;
  Plan whole_;
  std::vector<std::string> algorithms_, orders_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> next_channel_number_;
  std::map<std::int32_t, std::vector<std::int32_t>> lanes_of_rank_;
  std::int32_t next_temporary_ = 0;
  std::vector<std::int32_t> groups_;  // of the plan at hand: their numbers in the whole
  // Where the plan at hand begins.
  std::int32_t first_pack_ = 0;
  std::int32_t first_channel_ = 0;
  std::int32_t first_buffer_ = 0;
  std::uint32_t first_operand_ = 0;
};

}  // namespace

Plan side_by_side(std::span<const Plan* const> plans, LaneUse lanes) {
  return Composition(plans, lanes, false).compose();
}

Plan side_by_side(std::span<const Plan> plans, LaneUse lanes) {
  return side_by_side(pointers_to(plans), lanes);
}

Plan in_sequence(std::span<const Plan> plans) {
  return Composition(pointers_to(plans), LaneUse::kShared, true).compose();
}

}  // namespace onesum::plan
