#include "api/explain.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "plan/cost.h"
#include "plan/lower_bound.h"
#include "plan/sizes.h"
#include "planner/pack.h"

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

// "54 tensor(s) of 13312 bytes went by spec 0 (pscpu, up to 2048 bytes)", a line for each spec.
std::string routes_text(const planner::Planned& planned, const planner::Policy& policy) {
  std::vector<std::pair<std::size_t, std::size_t>> taken(policy.specs.size());  // tensors, bytes
  for (const planner::Stream& stream : planned.streams) {
    const planner::Route route = planner::route_of(stream, planner::CallKind::kBatchReduce, policy);
    if (route.way != planner::Way::kAllReduce) continue;
    ++taken[route.spec].first;
    taken[route.spec].second +=
        stream.replica_elements.front() * size_of(stream.task.replicas.front().element);
  }
  std::string text;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const AllReduceSpec& spec = policy.specs[i];
    const std::string limit =
        spec.limit < 0 ? "no limit" : fmt::format("tensors of up to {} bytes", spec.limit);
    text += fmt::format("spec {} ({}, {} shard(s), {}) takes {} tensor(s), {} bytes\n", i, spec.alg,
                        spec.shards, limit, taken[i].first, taken[i].second);
  }
  return text;
}

// How many partial sums the worker that has most brings, each a subtree of the canonical tree over replicas
// [begin, end) that is all its own. Returns the rank of a subtree with only one, else -1.
std::int32_t count_terms(std::span<const std::int32_t> ranks, std::map<std::int32_t, std::size_t>& terms) {
  if (ranks.size() == 1) return ranks.front();
  const std::size_t half = std::bit_floor(ranks.size() - 1);
  const std::int32_t left = count_terms(ranks.first(half), terms);
  const std::int32_t right = count_terms(ranks.subspan(half), terms);
  if (left == right) return left;
  if (left >= 0) ++terms[left];
  if (right >= 0) ++terms[right];
  return -1;
}

std::size_t most_terms(const planner::Planned& planned, const collective::Task& task) {
  std::vector<std::int32_t> ranks;
  for (const collective::Source& replica : task.replicas)
    ranks.push_back(planned.plan->rank_of(replica.device));
  std::map<std::int32_t, std::size_t> terms;
  count_terms(ranks, terms);
  std::size_t most = 1;
  for (const auto& [rank, count] : terms) most = std::max(most, count);
  return most;
}

// What the order of additions costs, or what it is not.
std::string order_text(const planner::Planned& planned, std::size_t pack,
                       const CommunicationOptions& options) {
  const planner::Choice& choice = planned.choices[pack];
  const collective::Task& task = planned.streams[planned.pack_streams[pack].front()].task;
  if (!choice.canonical && options.numerics == Numerics::kFast) {
    return "  order of additions: not the canonical one, as numerics fast allows\n";
  }
  if (!choice.canonical) {
    return "  order of additions: not the canonical one, which a ring cannot keep; rechd and direct can "
           "(nccl/rechd, or auto)\n";
  }
  std::string text = "  order of additions: canonical\n";
  const std::size_t terms = most_terms(planned, task);
  const bool sums_inside = choice.algorithm.find('/') != std::string::npos;
  if (sums_inside && terms > 1 && options.numerics == Numerics::kCanonical) {
    text += fmt::format(
        "  a worker's replicas are up to {} subtrees of the canonical tree, each of which is sent by itself: "
        "up to {} times the bytes of one sum; numerics fast sends one\n",
        terms, terms);
  }
  return text;
}

std::string chunks_text(const plan::Split& split) {
  if (split.empty()) return "1 chunk";
  if (plan::is_by_counts(split)) return "a chunk for each replica";
  return fmt::format("{} chunk(s)", plan::num_chunks(split));
}

std::string pack_text(const planner::Planned& planned, std::size_t p, const CommunicationOptions& options) {
  const std::vector<std::size_t>& streams = planned.pack_streams[p];
  const collective::Task& task = planned.streams[streams.front()].task;
  const plan::PackTable& table = planned.tables[p];
  std::string text =
      fmt::format("pack {}: {} tensor(s), {} replica(s) to {} destination(s), {}\n", p, streams.size(),
                  task.replicas.size(), task.destinations.size(), types_of(task));
  text += fmt::format("  {} elements in {} piece(s) of tensors, cut into {}\n", table.elements(),
                      table.members.size(), chunks_text(planned.plan->packs[p].split));
  text += fmt::format("  algorithm: {}: {}\n", planned.choices[p].algorithm, planned.choices[p].reason);
  text += order_text(planned, p, options);
  return text +
         fmt::format("  lower bound: {} bytes of memory read or written\n", least_traffic(planned, streams));
}

plan::Sizes sizes_of(const planner::Planned& planned) {
  plan::Sizes sizes;
  for (const plan::PackTable& table : planned.tables) {
    sizes.pack_lengths.push_back(table.elements());
    sizes.counts.emplace_back();
    for (const std::size_t count : table.counts) sizes.counts.back().push_back(count * table.outer);
  }
  return sizes;
}

std::string in_time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} µs", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

// What each device sends; those that send as much as their neighbour before them share its line.
std::string traffic_text(const planner::Planned& planned, const plan::Cost& cost) {
  if (cost.messages == 0) return "no messages: all devices address the same memory\n";
  std::string text =
      fmt::format("messages: {} across workers ({} bytes), {} inside ({} bytes)\n", cost.across.messages,
                  cost.across.bytes, cost.inside.messages, cost.inside.bytes);
  const auto is_alike = [&](std::size_t a, std::size_t b) {
    return cost.devices[a].bytes_sent == cost.devices[b].bytes_sent &&
           cost.devices[a].bytes_received == cost.devices[b].bytes_received;
  };
  for (std::size_t first = 0; first < cost.devices.size();) {
    std::size_t last = first;
    while (last + 1 < cost.devices.size() && is_alike(first, last + 1)) ++last;
    text += fmt::format("  {}{} sends {} bytes and receives {}\n", planned.devices[first].to_string(),
                        last == first ? "" : " to " + planned.devices[last].to_string() + " each",
                        cost.devices[first].bytes_sent, cost.devices[first].bytes_received);
    first = last + 1;
  }
  return text;
}

std::string cost_text(const planner::Planned& planned, const plan::CostConstants& constants) {
  const plan::Sizes sizes = sizes_of(planned);
  const plan::Cost cost = plan::cost(*planned.plan, sizes, constants);
  std::string text = traffic_text(planned, cost) + "predicted time: " + in_time(cost.seconds);
  if (const auto bound = plan::lower_bound(*planned.plan, sizes, constants)) {
    text += fmt::format("; no plan takes less than {} ({})", in_time(bound->seconds), bound->reason);
    if (bound->seconds > 0)
      text += fmt::format(", this one {:.2f} times that", cost.seconds / bound->seconds);
  }
  return text + "\n";
}

}  // namespace

std::string explain(const planner::Planned& planned, const planner::Planner& planner,
                    const CommunicationOptions& options) {
  const std::set<std::int32_t> ranks(planned.plan->device_rank.begin(), planned.plan->device_rank.end());
  std::string text =
      fmt::format("{} tensor(s) in {} pack(s) on {} device(s) of {} worker(s); order of additions: {}\n",
                  planned.streams.size(), planned.tables.size(), planned.devices.size(), ranks.size(),
                  planned.plan->order);
  text += routes_text(planned, planner.policy());
  for (std::size_t p = 0; p < planned.tables.size(); ++p) text += pack_text(planned, p, options);
  return text + cost_text(planned, planner.constants());
}

}  // namespace onesum::api
