#include "measures.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include <onesum/error.h>

#include "collective/all_reduce.h"
#include "plan/cost.h"
#include "plan/crossing.h"
#include "plan/sizes.h"
#include "plan/verify.h"

namespace onesum::algorithms_doc {
namespace {

// Elements: as many as any of the tables' numbers of workers and shards divide.
constexpr std::size_t kElements = 720720;

struct Parts {
  collective::Topology topology;
  collective::Task task;
};

Parts parts_of(const Subject& subject) {
  Parts parts;
  for (std::int32_t worker = 0; worker < subject.workers; ++worker) {
    parts.topology.hosts.push_back(worker * subject.devices);
    parts.topology.machines.push_back(worker * subject.machines / subject.workers);
    for (std::int32_t d = 0; d < subject.devices; ++d) {
      parts.topology.device_rank.push_back(worker);
      const std::int32_t device = worker * subject.devices + d;
      parts.task.replicas.push_back({device, Element::kFloat32});
      parts.task.destinations.push_back({device, -1});
    }
  }
  return parts;
}

// A channel has memory for its longest message.
std::size_t memory_of(const plan::Plan& plan, const plan::Sizes& sizes) {
  const auto bytes_of = [&](const plan::Buffer& buffer, plan::Chunks chunks) {
    return plan::extent_of(plan, sizes, buffer.pack, chunks).length * size_of(buffer.element);
  };
  std::size_t memory = 0;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.role == plan::Role::kTemp) memory += bytes_of(buffer, buffer.window);
  }
  std::vector<std::size_t> longest(plan.channels.size());
  for (const plan::Lane& lane : plan.lanes) {
    for (const plan::Step& step : lane.steps) {
      if (!plan::is_work(step.op)) continue;
      for (const plan::Operand& operand : plan.destinations(step)) {
        const plan::Buffer& buffer = plan.buffer(operand.buffer);
        if (buffer.role != plan::Role::kSlot) continue;
        std::size_t& most = longest[static_cast<std::size_t>(buffer.index)];
        most = std::max(most, bytes_of(buffer, operand.chunks));
      }
    }
  }
  for (const std::size_t bytes : longest) memory += bytes;
  return memory;
}

// How many messages follow each other: one that is sent after another was received in the same lane is one
// deeper.
class Depth {
 public:
  explicit Depth(const plan::Plan& plan)
      : plan_(plan), lanes_(plan.lanes.size()), sent_(plan.channels.size()) {}

  std::size_t count() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) goes_on |= advance(lane);
    }
    return std::ranges::max(lanes_, {}, &At::depth).depth;
  }

 private:
  struct At {
    std::size_t step = 0;  // the next one
    std::size_t depth = 0;
  };

  // As far as it can; whether that was a step at all.
  bool advance(std::size_t lane) {
    const std::size_t before = lanes_[lane].step;
    const std::vector<plan::Step>& steps = plan_.lanes[lane].steps;
    while (lanes_[lane].step < steps.size() && take(steps[lanes_[lane].step], lanes_[lane])) {
      ++lanes_[lane].step;
    }
    return lanes_[lane].step > before;
  }

  bool take(const plan::Step& step, At& at) {
    if (step.op == plan::Op::kRecv) {
      std::deque<std::size_t>& messages = sent_[static_cast<std::size_t>(step.channel)];
      if (messages.empty()) return false;
      at.depth = std::max(at.depth, messages.front());
      messages.pop_front();
    } else if (step.op == plan::Op::kWait) {
      const At& other = lanes_[static_cast<std::size_t>(step.lane)];
      if (other.step <= static_cast<std::size_t>(step.step)) return false;
      at.depth = std::max(at.depth, other.depth);
    } else if (plan::is_work(step.op)) {
      for (const plan::Operand& operand : plan_.destinations(step)) {
        const plan::Buffer& buffer = plan_.buffer(operand.buffer);
        if (buffer.role != plan::Role::kSlot) continue;
        sent_[static_cast<std::size_t>(buffer.index)].push_back(at.depth + 1);
      }
    }
    return true;
  }

  const plan::Plan& plan_;
  std::vector<At> lanes_;
  std::vector<std::deque<std::size_t>> sent_;  // by channel: depths of messages that nobody received yet
};

}  // namespace

Measures measure(const Subject& subject) {
  std::optional<collective::Scheme> scheme = collective::scheme_named(subject.name, subject.shards);
  if (!scheme) throw Error(ErrorCode::kInternal, "no algorithm is named " + std::string(subject.name));
  scheme->fast = subject.fast;
  const Parts parts = parts_of(subject);
  const plan::Plan plan = collective::all_reduce(parts.topology, parts.task, *scheme);
  const plan::PackProof proof = plan::verify(plan).packs.front();
  const plan::Sizes sizes{{kElements}, {{}}};
  const plan::Cost cost = plan::cost(plan, sizes);
  const auto in_tensors = [](std::size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kElements * size_of(Element::kFloat32));
  };
  Measures measures;
  measures.depth = Depth(plan).count();
  measures.steps = cost.longest_chain;
  measures.messages = cost.messages;
  for (const plan::DeviceCost& device : cost.devices) {
    measures.busiest_sends = std::max(measures.busiest_sends, in_tensors(device.bytes_sent));
  }
  measures.all_send = in_tensors(cost.total.bytes_sent);
  for (const plan::LinkCost& sent : plan::sent_between_machines(plan, sizes, parts.topology.machines)) {
    measures.machine_sends = std::max(measures.machine_sends, in_tensors(sent.bytes));
  }
  measures.memory = in_tensors(memory_of(plan, sizes));
  measures.canonical = proof.canonical;
  measures.expression = proof.expression;
  return measures;
}

}  // namespace onesum::algorithms_doc
