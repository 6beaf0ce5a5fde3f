#include "api/explain.h"

#include <fmt/format.h>

namespace onesum::api {
namespace {

// Memory that any way of doing it must touch: each replica read once, each result written once.
std::size_t least_traffic(const planner::Planned& planned, const std::vector<std::size_t>& streams) {
  std::size_t bytes = 0;
  for (const std::size_t s : streams) {
    const planner::Stream& stream = planned.streams[s];
    for (std::size_t r = 0; r < stream.task.replicas.size(); ++r) {
      bytes += stream.replica_elements[r] * size_of(stream.task.replicas[r].element);
    }
    bytes += stream.result_shape.elements() * size_of(stream.result_dtype) * stream.task.destinations.size();
  }
  return bytes;
}

std::string types_of(const collective::Task& task) {
  const Element input = task.replicas.front().element;
  std::string text(to_string(input));
  if (task.accumulator != input) text += fmt::format(", summed in {}", to_string(task.accumulator));
  if (task.output != input) text += fmt::format(", results in {}", to_string(task.output));
  return text;
}

}  // namespace

std::string explain(const planner::Planned& planned) {
  std::string text =
      fmt::format("{} tensor(s) in {} pack(s) on {} device(s); order of additions: {}\n",
                  planned.streams.size(), planned.tables.size(), planned.devices.size(), planned.plan->order);
  for (std::size_t p = 0; p < planned.tables.size(); ++p) {
    const std::vector<std::size_t>& streams = planned.pack_streams[p];
    const collective::Task& task = planned.streams[streams.front()].task;
    text += fmt::format("pack {}: {} tensor(s), {} replica(s) to {} destination(s), {}\n", p, streams.size(),
                        task.replicas.size(), task.destinations.size(), types_of(task));
    text += fmt::format("  algorithm: {}: {}\n", planned.choices[p].algorithm, planned.choices[p].reason);
    text +=
        fmt::format("  lower bound: {} bytes of memory read or written\n", least_traffic(planned, streams));
  }
  return text;
}

}  // namespace onesum::api
