#include "plan/simulate.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "plan/contracts.h"
#include "plan/groups.h"
#include "plan/refuse.h"
#include "plan/rules.h"
#include "plan/scalar.h"
#include "plan/text.h"
#include "plan/well_formed.h"

namespace onesum::plan {

namespace {

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  std::uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Message {
  Operand operand;  // of the slot it was written to
  Bytes data;
};

struct Wire {
  std::deque<Message> messages;  // each takes a slot until it is released
  bool held = false;             // whether the first one is received
  std::int32_t view = -1;        // into which buffer
};

class Simulation {
 public:
  Simulation(const Plan& plan, const Sizes& sizes, const BytesOfPacks& inputs, const SimulateOptions& options)
      : plan_(plan),
        sizes_(sizes),
        options_(options),
        groups_(plan),
        random_(options.seed),
        memory_(plan.buffers.size()),
        wires_(plan.channels.size()),
        next_(plan.lanes.size(), 0) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) allocate(i, inputs);
  }

  void run() {
    std::vector<std::int32_t> ready;
    while (true) {
      ready.clear();
      bool all_done = true;
      for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
        if (is_done(lane)) continue;
        all_done = false;
        if (can_run(lane)) ready.push_back(lane);
      }
      if (all_done) return;
      if (ready.empty()) refuse("simulation: no lane can go on");
      if (options_.seed != 0) {
        const std::int32_t lane = ready[next_random(random_) % ready.size()];
        perform(lane);
      } else {
        for (const std::int32_t lane : ready) {
          if (!is_done(lane) && can_run(lane)) perform(lane);
        }
      }
    }
  }

  BytesOfPacks results() {
    BytesOfPacks results(plan_.packs.size());
    const BuffersOfPacks buffers = result_buffers(plan_);
    for (std::size_t pack = 0; pack < results.size(); ++pack) {
      for (const std::int32_t buffer : buffers[pack]) {
        results[pack].push_back(memory_[static_cast<std::size_t>(buffer)]);
      }
    }
    return results;
  }

 private:
  bool is_done(std::int32_t lane) const {
    return next_[static_cast<std::size_t>(lane)] == plan_.lane(lane).steps.size();
  }
  const Step& step_of(std::int32_t lane) const {
    return plan_.lane(lane).steps[next_[static_cast<std::size_t>(lane)]];
  }
  Wire& wire(std::int32_t channel) { return wires_[static_cast<std::size_t>(channel)]; }

  std::size_t bytes_of(std::int32_t number, Chunks chunks) const {
    const Buffer& buffer = plan_.buffer(number);
    return extent_of(plan_, sizes_, buffer.pack, chunks).length * size_of(buffer.element);
  }

  void allocate(std::int32_t number, const BytesOfPacks& inputs) {
    const Buffer& buffer = plan_.buffer(number);
    if (buffer.role == Role::kSlot || buffer.role == Role::kView) return;
    Bytes& memory = memory_[static_cast<std::size_t>(number)];
    memory.resize(bytes_of(number, buffer.window));
    for (std::byte& byte : memory) byte = static_cast<std::byte>(next_random(random_));
    if (buffer.role != Role::kInput && buffer.role != Role::kInOut) return;
    const Chunks brought = brought_by(plan_, buffer);
    const auto pack = static_cast<std::size_t>(buffer.pack);
    const auto replica = static_cast<std::size_t>(buffer.index);
    if (pack >= inputs.size() || replica >= inputs[pack].size()) {
      refuse(fmt::format("simulation: replica {} of pack {} is not among the inputs", replica, pack));
    }
    const Bytes& input = inputs[pack][replica];
    const std::size_t bytes = bytes_of(number, brought);
    if (input.size() != bytes) {
      refuse(fmt::format("simulation: replica {} of pack {} has {} bytes, expected {}", buffer.index,
                         buffer.pack, input.size(), bytes));
    }
    std::ranges::copy(input, memory.begin() + static_cast<std::ptrdiff_t>(offset_of(number, brought)));
  }

  // Bytes from the beginning of a buffer's memory to a run of its chunks.
  std::size_t offset_of(std::int32_t number, Chunks chunks) const {
    const Buffer& buffer = plan_.buffer(number);
    const Extent window = extent_of(plan_, sizes_, buffer.pack, buffer.window);
    const Extent run = extent_of(plan_, sizes_, buffer.pack, chunks);
    return (run.offset - window.offset) * size_of(buffer.element);
  }

  bool can_run(std::int32_t lane) {
    const Step& step = step_of(lane);
    if (step.op == Op::kNative) return meeting_of(lane).size() == groups_.members(step.group).size();
    if (step.op == Op::kWait)
      return next_[static_cast<std::size_t>(step.lane)] > static_cast<std::size_t>(step.step);
    if (step.op == Op::kRecv) return !wire(step.channel).messages.empty() && !wire(step.channel).held;
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role == Role::kSlot && wire(buffer.index).messages.size() >= options_.slots) return false;
    }
    return true;
  }

  // The lanes that stand at a native step of the same group as this one, the first of each rank.
  std::vector<std::int32_t> meeting_of(std::int32_t lane) const {
    const std::int32_t group = step_of(lane).group;
    std::vector<std::int32_t> lanes;
    for (const Member& member : groups_.members(group)) {
      for (std::int32_t other = 0; other < static_cast<std::int32_t>(plan_.lanes.size()); ++other) {
        if (plan_.lane(other).rank != member.rank || is_done(other)) continue;
        if (step_of(other).op != Op::kNative || step_of(other).group != group) continue;
        lanes.push_back(other);
        break;
      }
    }
    return lanes;
  }

  // The steps of all ranks at once, added up in canonical order over the group's sources in the order of
  // ranks; any order would do.
  void native(const std::vector<std::int32_t>& lanes) {
    const Step& any = step_of(lanes.front());
    const Operand& run = plan_.operands[any.first_operand];
    const Buffer& buffer = plan_.buffer(run.buffer);
    std::vector<ScalarSource> sources;
    std::vector<Operand> destinations;
    for (const std::int32_t lane : lanes) {
      const Step& step = step_of(lane);
      const StepRef ref{lane, static_cast<std::int32_t>(next_[static_cast<std::size_t>(lane)])};
      const Operand& own = plan_.operands[step.first_operand];
      if (step.collective != any.collective || plan_.buffer(own.buffer).pack != buffer.pack ||
          plan_.buffer(own.buffer).element != buffer.element || own.chunks != run.chunks) {
        refuse(describe(plan_, ref) + ": another rank runs another collective");
      }
      for (const Operand& source : plan_.sources(step)) {
        sources.push_back({source_bytes(ref, source).data(), buffer.element, 0});
      }
      destinations.insert(destinations.end(), plan_.destinations(step).begin(),
                          plan_.destinations(step).end());
    }
    const bool has_one_root = (any.collective != Collective::kBroadcast || sources.size() == 1) &&
                              (any.collective != Collective::kReduce || destinations.size() == 1);
    if (!has_one_root) refuse("simulation: a native collective has not one root");
    const std::vector<std::uint8_t> merges = canonical_merges(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) sources[i].merges = merges[i];
    const Element accumulator = sources.size() == 1 ? buffer.element : plan_.pack(buffer.pack).accumulator;
    const std::size_t count = extent_of(plan_, sizes_, buffer.pack, run.chunks).length;
    Bytes result(bytes_of(run.buffer, run.chunks));
    const ScalarDestination to{result.data(), buffer.element};
    reduce_elements({accumulator, 1, sources, std::span(&to, 1), count});
    for (const Operand& destination : destinations) {
      std::ranges::copy(result, destination_bytes(destination).begin());
    }
    for (const std::int32_t lane : lanes) ++next_[static_cast<std::size_t>(lane)];
  }

  void perform(std::int32_t lane) {
    const StepRef ref{lane, static_cast<std::int32_t>(next_[static_cast<std::size_t>(lane)])};
    const Step& step = step_of(lane);
    switch (step.op) {
      case Op::kWait:
      case Op::kCounts:  // the sizes are known
        break;
      case Op::kRecv:
        receive(ref, step);
        break;
      case Op::kRelease:
        if (!wire(step.channel).held) refuse(describe(plan_, ref) + ": nothing to release");
        wire(step.channel).messages.pop_front();
        wire(step.channel).held = false;
        break;
      case Op::kCopy:
      case Op::kReduce:
        reduce(ref, step);
        break;
      case Op::kCall:
        call(ref, step);
        break;
      case Op::kNative:
        return native(meeting_of(lane));
    }
    ++next_[static_cast<std::size_t>(lane)];
  }

  void receive(StepRef ref, const Step& step) {
    Wire& from = wire(step.channel);
    const Operand& view = plan_.destinations(step).front();
    const Operand& sent = from.messages.front().operand;
    const Buffer& expected = plan_.buffer(view.buffer);
    const Buffer& slot = plan_.buffer(sent.buffer);
    if (slot.pack != expected.pack || slot.element != expected.element || sent.chunks != view.chunks) {
      refuse(describe(plan_, ref) + ": something else was sent");
    }
    from.held = true;
    from.view = view.buffer;
  }

  std::span<const std::byte> source_bytes(StepRef ref, const Operand& source) {
    const Buffer& buffer = plan_.buffer(source.buffer);
    const std::size_t bytes = bytes_of(source.buffer, source.chunks);
    if (buffer.role != Role::kView) {
      const Bytes& memory = memory_[static_cast<std::size_t>(source.buffer)];
      return std::span(memory).subspan(offset_of(source.buffer, source.chunks), bytes);
    }
    const Wire& from = wire(buffer.index);
    if (!from.held || from.view != source.buffer)
      refuse(describe(plan_, ref) + ": reads a view that it does not hold");
    const Message& message = from.messages.front();
    const Chunks& sent = message.operand.chunks;
    if (source.chunks.first < sent.first ||
        source.chunks.first + source.chunks.count > sent.first + sent.count) {
      refuse(describe(plan_, ref) + ": reads outside of the message");
    }
    const std::size_t offset = offset_of(source.buffer, source.chunks) - offset_of(source.buffer, sent);
    return std::span(message.data).subspan(offset, bytes);
  }

  // Memory of a destination; a message's is its own.
  std::span<std::byte> destination_bytes(const Operand& destination) {
    const Buffer& buffer = plan_.buffer(destination.buffer);
    const std::size_t bytes = bytes_of(destination.buffer, destination.chunks);
    if (buffer.role == Role::kSlot) {
      wire(buffer.index).messages.push_back({destination, Bytes(bytes)});
      return wire(buffer.index).messages.back().data;
    }
    Bytes& memory = memory_[static_cast<std::size_t>(destination.buffer)];
    return std::span(memory).subspan(offset_of(destination.buffer, destination.chunks), bytes);
  }

  void store(const Step& step, std::span<const ScalarSource> sources, Element accumulator) {
    std::vector<ScalarDestination> destinations;
    for (const Operand& destination : plan_.destinations(step)) {
      destinations.push_back(
          {destination_bytes(destination).data(), plan_.buffer(destination.buffer).element});
    }
    const Operand& first = plan_.destinations(step).front();
    const std::size_t count = extent_of(plan_, sizes_, plan_.buffer(first.buffer).pack, first.chunks).length;
    reduce_elements({accumulator, step.divisor, sources, destinations, count, step.combine});
  }

  void reduce(StepRef ref, const Step& step) {
    std::vector<ScalarSource> sources;
    for (const Operand& source : plan_.sources(step)) {
      const std::span<const std::byte> bytes = source_bytes(ref, source);
      sources.push_back({bytes.data(), plan_.buffer(source.buffer).element, source.merges});
    }
    store(step, sources, step.op == Op::kCopy ? sources.front().element : step.accumulator);
  }

  void call(StepRef ref, const Step& step) {
    if (!options_.call) refuse(describe(plan_, ref) + ": no function to call");
    SimulatedCall call;
    call.accumulator = step.accumulator;
    for (const Operand& source : plan_.sources(step)) {
      call.sources.push_back(source_bytes(ref, source));
      call.source_elements.push_back(plan_.buffer(source.buffer).element);
    }
    const Operand& first = plan_.sources(step).front();
    const Extent extent = extent_of(plan_, sizes_, plan_.buffer(first.buffer).pack, first.chunks);
    Bytes result(extent.length * size_of(step.accumulator));
    call.result = result;
    options_.call(call);
    const ScalarSource source{result.data(), step.accumulator, 0};
    store(step, std::span(&source, 1), step.accumulator);
  }

  const Plan& plan_;
  const Sizes& sizes_;
  const SimulateOptions& options_;
  Groups groups_;
  std::uint64_t random_;
  std::vector<Bytes> memory_;      // by buffer; slots and views have none
  std::vector<Wire> wires_;        // by channel
  std::vector<std::size_t> next_;  // of each lane, the step it stands at
};

}  // namespace

BytesOfPacks simulate(const Plan& plan, const Sizes& sizes, const BytesOfPacks& inputs,
                      const SimulateOptions& options) {
  check_well_formed(plan);
  check_rules(plan);
  Simulation simulation(plan, sizes, inputs, options);
  simulation.run();
  return simulation.results();
}

}  // namespace onesum::plan
