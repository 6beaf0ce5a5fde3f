#include "planner/select.h"

#include <fmt/format.h>

#include <onesum/error.h>

#include "planner/automatic.h"

namespace onesum::planner {
namespace {

std::string name_of_device(std::int32_t number, const Surroundings& surroundings) {
  return surroundings.devices[static_cast<std::size_t>(number)].to_string();
}

Selection select_one_device(const PackOfStreams& pack, std::int32_t on, const Surroundings& surroundings) {
  const Policy& policy = surroundings.policy;
  Selection selection;
  selection.algorithm = pack.route.way == Way::kConcatenate ? "concatenate" : "one_device";
  if (surroundings.kind == CallKind::kBroadcast) {
    selection.on = pack.task.replicas.front().device;
    selection.reason = fmt::format("a broadcast copies from where the value is, {}",
                                   name_of_device(selection.on, surroundings));
    return selection;
  }
  if (has_parts(surroundings.kind)) {
    const bool sums = pack.task.replicas.size() > 1;
    selection.on = sums ? pack.task.destinations.front().device : pack.task.replicas.front().device;
    selection.reason = fmt::format("this part of the {} is {}, {}", name_of(surroundings.kind),
                                   sums ? "summed where its result is" : "copied from where it is",
                                   name_of_device(selection.on, surroundings));
    return selection;
  }
  if (on >= 0) {
    selection.on = on;
    selection.reason =
        fmt::format("{} was given reduce_to_device {}", policy.name, name_of_device(on, surroundings));
  } else {
    selection.on = pack.task.destinations.front().device;
    selection.reason = fmt::format("{} works on the first device of the destination, {}",
                                   policy.specs.empty() || pack.route.way == Way::kConcatenate
                                       ? policy.name
                                       : "a reduce that is not an all-reduce",
                                   name_of_device(selection.on, surroundings));
  }
  if (pack.route.way == Way::kConcatenate) {
    selection.reason += "; the replicas are copied one after the other";
  } else if (uses_function(surroundings.kind, policy)) {
    selection.accumulation = collective::Accumulation::kFunction;
    selection.reason += ", with the caller's accumulation_fn";
  }
  return selection;
}

std::string in_bytes(std::int64_t limit) {
  return limit < 0 ? "without a limit" : fmt::format("up to {} bytes", limit);
}

// If it were a sum.
bool would_run_natively(collective::Task task, const collective::Scheme& scheme,
                        const Surroundings& surroundings) {
  task.combine = Combine::kSum;
  return collective::is_native(surroundings.topology, task, scheme);
}

Selection select_all_reduce(const PackOfStreams& pack, const Surroundings& surroundings) {
  const AllReduceSpec& spec = surroundings.policy.specs[pack.route.spec];
  Selection selection;
  selection.reason = fmt::format("spec {} ({}, {})", pack.route.spec, spec.alg, in_bytes(spec.limit));
  if (spec.alg == "auto") {
    const std::vector<Candidate> ranked = candidates(surroundings.topology, pack.task, pack.table.elements(),
                                                     surroundings.options, surroundings.constants);
    selection.scheme = ranked.front().scheme;
    selection.reason += ": " + reason_of(ranked);
  } else {
    const auto scheme = collective::scheme_named(spec.alg, static_cast<std::uint32_t>(spec.shards));
    if (!scheme) throw Error(ErrorCode::kInternal, "no algorithm is named " + spec.alg);
    selection.scheme = *scheme;
    selection.scheme.fast = surroundings.options.numerics == Numerics::kFast;
  }
  selection.scheme = collective::with_number(selection.scheme, surroundings.topology, pack.task, pack.number);
  selection.algorithm = to_string(selection.scheme);
  selection.native = collective::is_native(surroundings.topology, pack.task, selection.scheme);
  if (pack.task.combine != Combine::kSum && would_run_natively(pack.task, selection.scheme, surroundings)) {
    selection.reason += fmt::format("; NCCL is left to sum and mean: kernels of onesum form the {}",
                                    to_string(pack.task.combine));
  }
  selection.canonical = collective::is_canonical(surroundings.topology, pack.task, selection.scheme);
  return selection;
}

}  // namespace

Selection select(const PackOfStreams& pack, std::int32_t on, const Surroundings& surroundings) {
  return pack.route.way == Way::kAllReduce ? select_all_reduce(pack, surroundings)
                                           : select_one_device(pack, on, surroundings);
}

}  // namespace onesum::planner
