#include "api/explain.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/explain_packs.h"
#include "base/amounts.h"
#include "plan/cost.h"
#include "plan/lower_bound.h"
#include "plan/sizes.h"
#include "planner/pack.h"

namespace onesum::api {
namespace {

// "spec 0 (pscpu, 1 shard, tensors of up to 2048 bytes) takes 54 tensors, 13 KiB", a line for each spec.
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
    text += fmt::format("spec {} ({}, {}, {}) takes {}, {}\n", i, spec.alg,
                        counted(static_cast<std::size_t>(spec.shards), "shard"), limit,
                        counted(taken[i].first, "tensor"), format_bytes(taken[i].second));
  }
  return text;
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

// What each device sends; those that send as much as their neighbour before them share its line.
std::vector<std::string> device_lines(const planner::Planned& planned, const plan::Cost& cost) {
  const auto is_alike = [&](std::size_t a, std::size_t b) {
    return cost.devices[a].bytes_sent == cost.devices[b].bytes_sent &&
           cost.devices[a].bytes_received == cost.devices[b].bytes_received;
  };
  std::vector<std::string> lines;
  for (std::size_t first = 0; first < cost.devices.size();) {
    std::size_t last = first;
    while (last + 1 < cost.devices.size() && is_alike(first, last + 1)) ++last;
    lines.push_back(fmt::format("  {}{} sends {} and receives {}\n", planned.devices[first].to_string(),
                                last == first ? "" : " to " + planned.devices[last].to_string() + " each",
                                format_bytes(cost.devices[first].bytes_sent),
                                format_bytes(cost.devices[first].bytes_received)));
    first = last + 1;
  }
  return lines;
}

// The same where that would be too long to read.
std::string device_ranges(const plan::Cost& cost) {
  const auto range = [&](std::uint64_t plan::DeviceCost::* field) {
    const auto [least, most] = std::ranges::minmax(cost.devices, {}, field);
    return format_bytes(least.*field) + " to " + format_bytes(most.*field);
  };
  return fmt::format("  each of {} sends {} and receives {}\n", counted(cost.devices.size(), "device"),
                     range(&plan::DeviceCost::bytes_sent), range(&plan::DeviceCost::bytes_received));
}

std::string traffic_text(const planner::Planned& planned, const plan::Cost& cost) {
  constexpr std::size_t kMostLines = 16;
  std::string text;
  if (cost.native.steps > 0) {
    text = fmt::format(
        "native collectives: {}, one for each worker and collective, that move {} between devices at least\n",
        counted(cost.native.steps, "step"), format_bytes(cost.native.bytes));
    if (cost.messages == 0) return text;
  }
  if (cost.messages == 0) return "no messages: all devices address the same memory\n";
  text += fmt::format("messages: {} across workers ({}), {} inside ({})\n", cost.across.messages,
                      format_bytes(cost.across.bytes), cost.inside.messages, format_bytes(cost.inside.bytes));
  const std::vector<std::string> lines = device_lines(planned, cost);
  if (lines.size() > kMostLines) return text + device_ranges(cost);
  for (const std::string& line : lines) text += line;
  return text;
}

std::string cost_text(const planner::Planned& planned, const plan::CostConstants& constants) {
  const plan::Sizes sizes = sizes_of(planned);
  const plan::Cost cost = plan::cost(*planned.plan, sizes, constants);
  std::string text = traffic_text(planned, cost) + "predicted time: " + format_time(cost.seconds);
  if (const auto bound = plan::lower_bound(*planned.plan, sizes, constants)) {
    text += fmt::format("; no plan takes less than {} ({})", format_time(bound->seconds), bound->reason);
    if (bound->seconds > 0)
      text += fmt::format(", this one {} times that", format_number(cost.seconds / bound->seconds));
  }
  return text + "\n";
}

}  // namespace

std::string explain(const planner::Planned& planned, const planner::Planner& planner,
                    const CommunicationOptions& options) {
  const std::set<std::int32_t> ranks(planned.plan->device_rank.begin(), planned.plan->device_rank.end());
  std::string text = fmt::format(
      "{} in {} on {} of {}; order of additions: {}\n",
      counted(planner::count_tensors(planned.streams), "tensor"), counted(planned.tables.size(), "pack"),
      counted(planned.devices.size(), "device"), counted(ranks.size(), "worker"), planned.plan->order);
  text += routes_text(planned, planner.policy());
  return text + explain_packs(planned, options) + cost_text(planned, planner.constants());
}

}  // namespace onesum::api
