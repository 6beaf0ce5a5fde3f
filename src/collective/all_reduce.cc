#include "collective/all_reduce.h"

#include <algorithm>
#include <array>
#include <utility>

#include <onesum/error.h>

#include "collective/all_reduce_writer.h"
#include "collective/draft.h"

namespace onesum::collective {
namespace {

// By the number of the algorithm.
constexpr std::array<std::string_view, 11> kNames = {
    "nccl",     "xring",    "rechd",    "pscpu", "psgpu", "direct", "hierarchical_copy",
    "exchange", "machines", "doubling", "pool"};
static_assert(kNames.size() == static_cast<std::size_t>(Algorithm::kPool) + 1);

}  // namespace

std::span<const std::string_view> algorithm_names() noexcept { return kNames; }

std::string_view name_of(Algorithm algorithm) noexcept { return kNames[static_cast<std::size_t>(algorithm)]; }

std::optional<Algorithm> algorithm_named(std::string_view name) noexcept {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Algorithm>(found - kNames.begin());
}

std::string to_string(const Scheme& scheme) {
  std::string name;
  if (scheme.inside) name.append(name_of(*scheme.inside)).append("/");
  name.append(name_of(scheme.across));
  if (scheme.shards > 1) name.append("#").append(std::to_string(scheme.shards));
  return name;
}

std::optional<Scheme> scheme_named(std::string_view name, std::uint32_t shards) noexcept {
  Scheme scheme;
  scheme.shards = shards;
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    scheme.inside = algorithm_named(name.substr(0, slash));
    if (!scheme.inside) return std::nullopt;
    name.remove_prefix(slash + 1);
  }
  const std::optional<Algorithm> across = algorithm_named(name);
  if (!across) return std::nullopt;
  scheme.across = *across;
  return scheme;
}

plan::Plan all_reduce(const Topology& topology, const Task& task, const Scheme& scheme,
                      std::optional<std::int32_t> only_rank) {
  AllReduceWriter writer(topology, task, scheme);
  Draft draft(to_string(scheme), topology, task, writer.cut(), only_rank);
  writer.write(draft);
  return std::move(draft).take();
}

namespace {

void check_has_halves(const Scheme& scheme) {
  const bool has_halves = scheme.across == Algorithm::kRing || scheme.across == Algorithm::kDirect ||
                          scheme.across == Algorithm::kHalvingDoubling;
  if (has_halves && !scheme.inside && scheme.shards == 1) return;
  throw Error(ErrorCode::kInvalidArgument,
              to_string(scheme) + " has no halves of its own; expected xring, rechd or direct in one shard");
}

// The task as its halves see it: result i on the device of replica i, in memory of its own.
Task in_order(Task task) {
  task.destinations.clear();
  for (const Source& replica : task.replicas) task.destinations.push_back({replica.device, -1});
  return task;
}

// How many parties own something; they are the first ones.
std::size_t count_owners(const std::vector<plan::Chunks>& owned) {
  return static_cast<std::size_t>(
      std::ranges::count_if(owned, [](const plan::Chunks& chunks) { return chunks.count > 0; }));
}

plan::Plan write_half(AllReduceWriter& whole, const Topology& topology, const Task& half,
                      const std::string& name) {
  Draft draft(name, topology, half, whole.cut());
  const std::vector<plan::Chunks> owned = whole.owned();
  for (std::size_t i = 0; i < owned.size(); ++i) draft.set_window(static_cast<std::int32_t>(i), owned[i]);
  whole.write(draft);
  return std::move(draft).take();
}

}  // namespace

plan::Plan reduce_scatter(const Topology& topology, const Task& task, const Scheme& scheme) {
  check_has_halves(scheme);
  const Task ordered = in_order(task);
  AllReduceWriter whole(topology, ordered, scheme);
  Task half = ordered;
  half.contract = plan::Contract::kScatter;
  half.destinations.resize(count_owners(whole.owned()));
  return write_half(whole, topology, half, to_string(scheme) + " reduce_scatter");
}

plan::Plan all_gather(const Topology& topology, const Task& task, const Scheme& scheme) {
  check_has_halves(scheme);
  const Task ordered = in_order(task);
  AllReduceWriter whole(topology, ordered, scheme);
  Task half = ordered;
  half.contract = plan::Contract::kConcatenate;
  half.accumulator = task.output;
  half.combine = Combine::kSum;  // there is nothing left to combine
  half.divisor = 1;
  half.replicas.resize(count_owners(whole.owned()));
  for (Source& replica : half.replicas) replica.element = task.output;
  return write_half(whole, topology, half, to_string(scheme) + " all_gather");
}

Scheme with_number(Scheme scheme, const Topology& topology, const Task& task, std::size_t number) {
  scheme.number = number % AllReduceWriter(topology, task, scheme).turns();
  return scheme;
}

bool is_native(const Topology& topology, const Task& task, const Scheme& scheme) {
  return AllReduceWriter(topology, task, scheme).native() != AllReduceWriter::Native::kNone;
}

bool is_canonical(const Topology& topology, const Task& task, const Scheme& scheme) {
  return AllReduceWriter(topology, task, scheme).order() == "canonical";
}

}  // namespace onesum::collective
