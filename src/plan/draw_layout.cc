#include "plan/draw_layout.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "plan/groups.h"
#include "plan/locations.h"
#include "plan/progress.h"
#include "plan/rules.h"

namespace onesum::plan {

namespace {

class Placing {
 public:
  explicit Placing(const Plan& plan)
      : plan_(plan),
        locations_(plan),
        groups_(plan),
        writers_(locations_.size(), -1),
        senders_(plan.channels.size(), -1),
        lane_row_(plan.lanes.size(), -1),
        waits_(plan.lanes.size()),
        box_after_(plan.lanes.size()) {}

  Layout place() {
    for (const StepRef& ref : run_to_end(plan_)) visit(ref);
    add_results();
    drop_needless_waits();
    for (const Box& box : layout_.boxes) layout_.rows = std::max(layout_.rows, box.row + 1);
    return std::move(layout_);
  }

 private:
  void visit(StepRef ref) {
    const auto lane = static_cast<std::size_t>(ref.lane);
    const Step& step = plan_.lanes[lane].steps[static_cast<std::size_t>(ref.step)];
    if (step.op == Op::kWait) {
      const std::int32_t box =
          box_after_[static_cast<std::size_t>(step.lane)][static_cast<std::size_t>(step.step)];
      if (box >= 0 && step.lane != ref.lane) waits_[lane].push_back(box);
    } else if (step.op == Op::kNative) {
      meeting_.push_back(ref);
      if (meeting_.size() == groups_.members(step.group).size()) add_meeting();
      return;
    } else if (is_work(step.op)) {
      add_box(ref, step, row_of(ref, step));
    }
    const std::int32_t last = box_after_[lane].empty() ? -1 : box_after_[lane].back();
    box_after_[lane].push_back(is_work(step.op) ? static_cast<std::int32_t>(layout_.boxes.size()) - 1 : last);
  }

  const Step& step_at(StepRef ref) const {
    return plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
  }

  // The boxes of a native collective, one for each rank, in one row that is free for all of them.
  void add_meeting() {
    std::ranges::sort(meeting_, {}, [&](StepRef ref) { return step_at(ref).device; });
    std::int32_t row = 0;
    for (const StepRef& ref : meeting_) row = std::max(row, row_of(ref, step_at(ref)));
    const auto is_taken = [&](StepRef ref) { return taken_.contains({step_at(ref).device, row}); };
    while (std::ranges::any_of(meeting_, is_taken)) ++row;
    for (std::size_t i = 0; i < meeting_.size(); ++i) {
      const StepRef ref = meeting_[i];
      add_box(ref, step_at(ref), row);
      const auto number = static_cast<std::int32_t>(layout_.boxes.size()) - 1;
      box_after_[static_cast<std::size_t>(ref.lane)].push_back(number);
      if (i == 0) continue;
      add_flow({Flow::Kind::kMeeting, number - 1, number, device_of(number - 1), device_of(number)});
    }
    meeting_.clear();
  }

  template <class F>
  void for_each_chunk(const Operand& operand, F&& f) {
    for (std::uint32_t i = 0; i < operand.chunks.count; ++i) {
      f(writers_[locations_.at(operand.buffer, operand.chunks.first + i)]);
    }
  }

  // Calls f with the box (-1: none) that wrote each chunk of a source. With one slot per channel, the message
  // that is read is the one that was sent last.
  template <class F>
  void for_each_writer(const Operand& source, F&& f) {
    const Buffer& buffer = plan_.buffer(source.buffer);
    if (buffer.role == Role::kView) {
      f(senders_[static_cast<std::size_t>(buffer.index)]);
    } else {
      for_each_chunk(source, f);
    }
  }

  void add_flow(const Flow& flow) {
    const auto key = std::tuple(flow.kind, flow.from, flow.to, flow.from_device, flow.to_device);
    if (seen_.insert(key).second) layout_.flows.push_back(flow);
  }

  // The first row in which a step can be: below all that it waits for.
  std::int32_t row_of(StepRef ref, const Step& step) {
    const auto lane = static_cast<std::size_t>(ref.lane);
    std::int32_t row = lane_row_[lane] + 1;
    const auto after = [&](std::int32_t box) {
      if (box >= 0) row = std::max(row, layout_.boxes[static_cast<std::size_t>(box)].row + 1);
    };
    for (const std::int32_t box : waits_[lane]) after(box);
    for (const Operand& source : plan_.sources(step)) for_each_writer(source, after);
    return row;
  }

  void add_box(StepRef ref, const Step& step, std::int32_t row) {
    const auto lane = static_cast<std::size_t>(ref.lane);
    const auto number = static_cast<std::int32_t>(layout_.boxes.size());
    for (const std::int32_t box : waits_[lane]) {
      add_flow({Flow::Kind::kWait, box, number, device_of(box), step.device});
    }
    waits_[lane].clear();
    for (const Operand& source : plan_.sources(step)) {
      const Buffer& buffer = plan_.buffer(source.buffer);
      const Flow::Kind kind = buffer.role == Role::kView ? Flow::Kind::kMessage : Flow::Kind::kMemory;
      for_each_writer(source, [&](std::int32_t writer) {
        const std::int32_t from = writer >= 0 ? device_of(writer) : buffer.device;
        if (from != step.device) add_flow({kind, writer, number, from, step.device});
      });
    }
    while (!taken_.insert({step.device, row}).second) ++row;
    layout_.boxes.push_back({ref, step.device, row});
    lane_row_[lane] = row;
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role == Role::kSlot) {
        senders_[static_cast<std::size_t>(buffer.index)] = number;
      } else {
        for_each_chunk(destination, [&](std::int32_t& writer) { writer = number; });
      }
    }
  }

  // Where data flows from a box to another it need not be said that the other waits for it.
  void drop_needless_waits() {
    std::erase_if(layout_.flows, [&](const Flow& wait) {
      const auto flows_as = [&](Flow::Kind kind) {
        return seen_.contains({kind, wait.from, wait.to, wait.from_device, wait.to_device});
      };
      return wait.kind == Flow::Kind::kWait &&
             (flows_as(Flow::Kind::kMemory) || flows_as(Flow::Kind::kMessage));
    });
  }

  std::int32_t device_of(std::int32_t box) const {
    return layout_.boxes[static_cast<std::size_t>(box)].device;
  }

  void add_results() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan_.buffers.size()); ++i) {
      const Buffer& buffer = plan_.buffer(i);
      if (buffer.role != Role::kOutput && buffer.role != Role::kInOut) continue;
      for_each_chunk({i, buffer.window, 0}, [&](std::int32_t writer) {
        if (writer < 0 || device_of(writer) == buffer.device) return;
        add_flow({Flow::Kind::kMemory, writer, -1, device_of(writer), buffer.device});
      });
    }
  }

  const Plan& plan_;
  Locations locations_;
  Groups groups_;
  std::vector<StepRef> meeting_;                      // native steps of the collective at hand
  std::vector<std::int32_t> writers_;                 // by location: the box that wrote it; -1: nobody
  std::vector<std::int32_t> senders_;                 // by channel: the box that sent the message in its slot
  std::vector<std::int32_t> lane_row_;                // by lane: of its last box
  std::vector<std::vector<std::int32_t>> waits_;      // by lane: boxes that its next box waits for
  std::vector<std::vector<std::int32_t>> box_after_;  // by lane and step: the last box up to it
  std::set<std::pair<std::int32_t, std::int32_t>> taken_;  // device and row
  std::set<std::tuple<Flow::Kind, std::int32_t, std::int32_t, std::int32_t, std::int32_t>> seen_;
  Layout layout_;
};

}  // namespace

Layout lay_out(const Plan& plan) {
  check_rules(plan);
  return Placing(plan).place();
}

}  // namespace onesum::plan
