#include "collective/one_device.h"

#include <utility>

#include "plan/builder.h"

namespace onesum::collective {
namespace {

using plan::Builder;
using plan::Chunks;
using plan::Contract;
using plan::Operand;

// The buffers of a task; where a result replaces a replica both are the same buffer.
struct Buffers {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> outputs;
};

plan::Pack pack_of(const Task& task) {
  plan::Pack pack;
  pack.contract = task.contract;
  pack.accumulator = task.accumulator;
  pack.output = task.output;
  pack.divisor = task.divisor;
  for (const Source& replica : task.replicas) pack.replicas.push_back(replica.device);
  for (const Target& target : task.destinations) pack.destinations.push_back(target.device);
  if (task.contract == Contract::kConcatenate) {
    pack.split = {{plan::SplitRule::kCounts, static_cast<std::uint32_t>(task.replicas.size())}};
  }
  return pack;
}

Buffers add_buffers(Builder& builder, std::int32_t pack, const Task& task) {
  Buffers buffers;
  std::vector<bool> replaced(task.replicas.size());
  for (const Target& target : task.destinations) {
    if (target.in_place_of >= 0) replaced[static_cast<std::size_t>(target.in_place_of)] = true;
  }
  for (std::size_t r = 0; r < task.replicas.size(); ++r) {
    const auto replica = static_cast<std::int32_t>(r);
    const Element element = task.replicas[r].element;
    buffers.inputs.push_back(replaced[r] ? builder.inout(pack, replica, element)
                                         : builder.input(pack, replica, element));
  }
  for (std::size_t d = 0; d < task.destinations.size(); ++d) {
    const std::int32_t replica = task.destinations[d].in_place_of;
    buffers.outputs.push_back(replica >= 0 ? buffers.inputs[static_cast<std::size_t>(replica)]
                                           : builder.output(pack, static_cast<std::int32_t>(d)));
  }
  return buffers;
}

// Every destination's chunks = one buffer's, converted and divided as the task says.
void spread(Builder& builder, std::int32_t lane, std::int32_t on, const Task& task, Element from_element,
            std::int32_t from, const std::vector<std::int32_t>& to, Chunks chunks) {
  std::vector<Operand> destinations;
  for (const std::int32_t buffer : to) {
    if (buffer != from) destinations.push_back({buffer, chunks});
  }
  if (destinations.empty()) return;  // the one result is already where it belongs
  const Operand source{from, chunks};
  if (from_element == task.output && task.divisor == 1) {
    builder.copy(lane, on, destinations, source);
  } else {
    builder.reduce(lane, on, destinations, std::span(&source, 1), task.accumulator, task.divisor);
  }
}

void sum_by_tree(Builder& builder, std::int32_t lane, std::int32_t on, const Task& task,
                 const Buffers& buffers) {
  const Chunks all = builder.all_chunks(0);
  std::vector<Operand> sources;
  const std::vector<std::uint8_t> merges = plan::canonical_merges(task.replicas.size());
  for (std::size_t r = 0; r < task.replicas.size(); ++r)
    sources.push_back({buffers.inputs[r], all, merges[r]});
  std::vector<Operand> destinations;
  for (const std::int32_t buffer : buffers.outputs) destinations.push_back({buffer, all});
  builder.reduce(lane, on, destinations, sources, task.accumulator, task.divisor);
}

void sum_by_function(Builder& builder, std::int32_t lane, std::int32_t on, const Task& task,
                     const Buffers& buffers) {
  const Chunks all = builder.all_chunks(0);
  const Element element = task.replicas.front().element;
  const std::int32_t result = builder.temp(0, on, element, all);
  std::vector<Operand> sources;
  for (const std::int32_t input : buffers.inputs) sources.push_back({input, all});
  builder.call(lane, on, {result, all}, sources, element);
  spread(builder, lane, on, task, element, result, buffers.outputs, all);
}

}  // namespace

plan::Plan one_device(const std::vector<std::int32_t>& device_rank, const Task& task, std::int32_t on,
                      Accumulation accumulation) {
  Builder builder("one_device", device_rank);
  const std::int32_t pack = builder.add_pack(pack_of(task));
  const std::int32_t lane = builder.add_lane(device_rank[static_cast<std::size_t>(on)]);
  const Buffers buffers = add_buffers(builder, pack, task);
  if (task.contract == Contract::kConcatenate) {
    for (std::uint32_t r = 0; r < task.replicas.size(); ++r) {
      spread(builder, lane, on, task, task.replicas[r].element, buffers.inputs[r], buffers.outputs, {r, 1});
    }
  } else if (accumulation == Accumulation::kFunction) {
    builder.claim_order("accumulation_fn");
    sum_by_function(builder, lane, on, task, buffers);
  } else if (task.replicas.size() == 1) {
    spread(builder, lane, on, task, task.replicas.front().element, buffers.inputs.front(), buffers.outputs,
           builder.all_chunks(pack));
  } else {
    sum_by_tree(builder, lane, on, task, buffers);
  }
  return std::move(builder).take();
}

}  // namespace onesum::collective
