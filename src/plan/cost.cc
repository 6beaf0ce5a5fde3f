#include "plan/cost.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// When something happened, and after how many steps in a chain.
struct Moment {
  double time = 0;
  std::size_t chain = 0;
};

Moment later(const Moment& a, const Moment& b) {
  return {std::max(a.time, b.time), std::max(a.chain, b.chain)};
}

struct Line {
  std::deque<Moment> arrivals;  // of messages that nobody received yet
  std::deque<double> freed;     // when slots became free; as many as are free
};

class Scheduling {
 public:
  Scheduling(const Plan& plan, const Sizes& sizes, const CostConstants& constants)
      : plan_(plan),
        sizes_(sizes),
        constants_(constants),
        lanes_(plan.lanes.size()),
        done_(plan.lanes.size()),
        lines_(plan.channels.size()) {
    std::int32_t ranks = 0;
    for (const std::int32_t rank : plan.device_rank) ranks = std::max(ranks, rank + 1);
    for (const Lane& lane : plan.lanes) ranks = std::max(ranks, lane.rank + 1);
    busy_until_.resize(static_cast<std::size_t>(ranks), 0);
    for (Line& line : lines_) line.freed.assign(std::max<std::size_t>(constants.slots, 1), 0);
    cost_.devices.resize(plan.device_rank.size());
  }

  Cost run() {
    while (true) {
      std::size_t best = lanes_.size();
      double best_start = kNever;
      bool all_done = true;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (done_[lane].size() == plan_.lanes[lane].steps.size()) continue;
        all_done = false;
        const double start = earliest(lane);
        if (start < best_start) {
          best = lane;
          best_start = start;
        }
      }
      if (all_done) break;
      if (best == lanes_.size()) refuse("cost: the plan does not get to its end");
      perform(best, best_start);
    }
    add_up();
    return std::move(cost_);
  }

 private:
  const Step& next(std::size_t lane) const { return plan_.lanes[lane].steps[done_[lane].size()]; }
  double& busy(std::size_t lane) { return busy_until_[static_cast<std::size_t>(plan_.lanes[lane].rank)]; }
  Line& line(std::int32_t channel) { return lines_[static_cast<std::size_t>(channel)]; }

  const Moment* awaited(const Step& step) const {
    const std::vector<Moment>& done = done_[static_cast<std::size_t>(step.lane)];
    const auto index = static_cast<std::size_t>(step.step);
    return index < done.size() ? &done[index] : nullptr;
  }

  // When the next step of a lane could begin, as far as is known by now.
  double earliest(std::size_t lane) {
    const Step& step = next(lane);
    double start = lanes_[lane].time;
    switch (step.op) {
      case Op::kWait:
        return awaited(step) != nullptr ? std::max(start, awaited(step)->time) : kNever;
      case Op::kRecv:
        return line(step.channel).arrivals.empty()
                   ? kNever
                   : std::max(start, line(step.channel).arrivals.front().time);
      case Op::kRelease:
        return start;
      default:
        break;
    }
    start = std::max(start, busy(lane));
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role != Role::kSlot) continue;
      const Line& to = line(buffer.index);
      start = to.freed.empty() ? kNever : std::max(start, to.freed.front());
    }
    return start;
  }

  void perform(std::size_t lane, double start) {
    const Step& step = next(lane);
    Moment& now = lanes_[lane];
    now.time = start;
    switch (step.op) {
      case Op::kWait:
        now = later(now, *awaited(step));
        break;
      case Op::kRecv:
        now = later(now, line(step.channel).arrivals.front());
        line(step.channel).arrivals.pop_front();
        break;
      case Op::kRelease:
        line(step.channel).freed.push_back(start);
        break;
      default:
        compute(lane, step);
    }
    done_[lane].push_back(now);
    cost_.seconds = std::max(cost_.seconds, now.time);
  }

  std::uint64_t bytes_of(const Operand& operand) const {
    const Buffer& buffer = plan_.buffer(operand.buffer);
    return extent_of(plan_, sizes_, buffer.pack, operand.chunks).length * size_of(buffer.element);
  }

  void compute(std::size_t lane, const Step& step) {
    DeviceCost& device = cost_.devices[static_cast<std::size_t>(step.device)];
    std::uint64_t traffic = 0;
    for (const Operand& source : plan_.sources(step)) {
      device.bytes_read += bytes_of(source);
      traffic += bytes_of(source);
    }
    for (const Operand& destination : plan_.destinations(step)) {
      device.bytes_written += bytes_of(destination);
      traffic += bytes_of(destination);
    }
    if (step.op == Op::kReduce) {
      const Operand& first = plan_.sources(step).front();
      const Extent extent = extent_of(plan_, sizes_, plan_.buffer(first.buffer).pack, first.chunks);
      device.additions += extent.length * (step.num_sources - 1u);
    }
    Moment& now = lanes_[lane];
    now.time += constants_.step + constants_.gamma * static_cast<double>(traffic);
    ++now.chain;
    busy(lane) = now.time;
    ++cost_.steps;
    cost_.longest_chain = std::max(cost_.longest_chain, now.chain);
    for (const Operand& destination : plan_.destinations(step)) send(destination, now);
  }

  void send(const Operand& destination, const Moment& now) {
    const Buffer& buffer = plan_.buffer(destination.buffer);
    if (buffer.role != Role::kSlot) return;
    const std::uint64_t bytes = bytes_of(destination);
    Line& to = line(buffer.index);
    if (to.freed.empty()) refuse("cost: a step sends twice on one channel");
    to.freed.pop_front();
    to.arrivals.push_back(
        {now.time + constants_.alpha + constants_.beta * static_cast<double>(bytes), now.chain});
    cost_.devices[static_cast<std::size_t>(buffer.device)].bytes_sent += bytes;
    ++cost_.messages;
  }

  void add_up() {
    for (const DeviceCost& device : cost_.devices) {
      cost_.total.bytes_read += device.bytes_read;
      cost_.total.bytes_written += device.bytes_written;
      cost_.total.bytes_sent += device.bytes_sent;
      cost_.total.additions += device.additions;
    }
  }

  const Plan& plan_;
  const Sizes& sizes_;
  const CostConstants& constants_;
  std::vector<Moment> lanes_;              // where each lane stands
  std::vector<std::vector<Moment>> done_;  // of each lane, when its steps were done
  std::vector<Line> lines_;                // by channel
  std::vector<double> busy_until_;         // by rank
  Cost cost_;
};

}  // namespace

Cost cost(const Plan& plan, const Sizes& sizes, const CostConstants& constants) {
  return Scheduling(plan, sizes, constants).run();
}

}  // namespace onesum::plan
