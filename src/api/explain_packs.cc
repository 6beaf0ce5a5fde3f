#include "api/explain_packs.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/amounts.h"
#include "base/element.h"
#include "plan/sizes.h"

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

std::string types_of(const collective::Task& task, bool is_native) {
  const Element input = task.replicas.front().element;
  std::string text;
  if (task.combine != Combine::kSum) text = fmt::format("{} of ", to_string(task.combine));
  text += to_string(input);
  if (task.accumulator != input && is_native) {
    text += ", partial sums rounded to it as the GPUs' library does";
  } else if (task.accumulator != input) {
    text += fmt::format(", {} in {}", task.combine == Combine::kSum ? "summed" : "multiplied",
                        to_string(task.accumulator));
  }
  if (task.output != input) text += fmt::format(", results in {}", to_string(task.output));
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
  if (!choice.canonical && choice.native) {
    return "  order of additions: that of the GPUs' native collectives, which only their library knows\n";
  }
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
  return counted(plan::num_chunks(split), "chunk");
}

// All but sizes.
std::string words_about(const planner::Planned& planned, std::size_t p, const CommunicationOptions& options) {
  const collective::Task& task = planned.streams[planned.pack_streams[p].front()].task;
  return fmt::format("  {}, from {} to {}, cut into {}\n  algorithm: {}: {}\n",
                     types_of(task, planned.choices[p].native), counted(task.replicas.size(), "replica"),
                     counted(task.destinations.size(), "destination"),
                     chunks_text(planned.plan->packs[p].split), planned.choices[p].algorithm,
                     planned.choices[p].reason) +
         order_text(planned, p, options);
}

// "packs 0 to 114: 1 tensor each, 64 to 16384 elements (256 B to 64 KiB)".
std::string sizes_text(const planner::Planned& planned, const std::vector<std::size_t>& packs) {
  std::vector<std::size_t> tensors;
  std::vector<std::size_t> elements;
  for (const std::size_t p : packs) {
    tensors.push_back(planned.pack_streams[p].size());
    elements.push_back(planned.tables[p].elements());
  }
  const auto [fewest, most] = std::ranges::minmax(tensors);
  const auto [least, largest] = std::ranges::minmax(elements);
  const collective::Task& task = planned.streams[planned.pack_streams[packs.front()].front()].task;
  const std::size_t element_bytes = size_of(task.replicas.front().element);
  std::string bytes = format_bytes(largest * element_bytes);
  if (least != largest) bytes = format_bytes(least * element_bytes) + " to " + bytes;
  return fmt::format("{}: {} tensor{}{}, {} element{} ({})\n", numbered("pack", packs),
                     format_range(fewest, most), most == 1 ? "" : "s", packs.size() == 1 ? "" : " each",
                     format_range(least, largest), largest == 1 ? "" : "s", bytes);
}

std::string traffic_text(const planner::Planned& planned, const std::vector<std::size_t>& packs) {
  std::size_t bytes = 0;
  for (const std::size_t p : packs) bytes += least_traffic(planned, planned.pack_streams[p]);
  return fmt::format("  lower bound: {} of memory read or written{}\n", format_bytes(bytes),
                     packs.size() == 1 ? "" : " by all of them");
}

}  // namespace

std::string explain_packs(const planner::Planned& planned, const CommunicationOptions& options) {
  const auto words = [&](std::size_t p) { return words_about(planned, p, options); };
  std::string text;
  for (const Alike& alike : grouped(planned.tables.size(), words)) {
    text += sizes_text(planned, alike.numbers) + alike.words + traffic_text(planned, alike.numbers);
  }
  return text;
}

}  // namespace onesum::api
