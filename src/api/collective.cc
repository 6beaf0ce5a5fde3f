#include "api/collective.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

namespace onesum {
namespace {

using planner::CallKind;

struct Name {
  std::string_view text;
  CallKind kind;
};
constexpr std::array kNames{
    // in the order of the enumeration
    Name{"reduce", CallKind::kBatchReduce},
    Name{"broadcast", CallKind::kBroadcast},
    Name{"reduce_scatter", CallKind::kReduceScatter},
    Name{"all_gather", CallKind::kAllGather},
    Name{"scatter", CallKind::kScatter},
    Name{"all_to_all", CallKind::kAllToAll},
};

// Numbers that no collective has are refused by check(), and are until then those of the first.
const Name& name_of(CollectiveKind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return kNames[number < kNames.size() ? number : 0];
}

}  // namespace

std::string_view to_string(CollectiveKind kind) noexcept { return name_of(kind).text; }

CollectiveKind parse_collective_kind(std::string_view text) {
  std::string names;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].text == text) return static_cast<CollectiveKind>(i);
    names.append(names.empty() ? "" : ", ").append(kNames[i].text);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no collective is named \"{}\"; expected one of {}", text, names));
}

Collective Collective::reduce(ReduceOp op, std::vector<PerReplica> values, std::vector<PerReplica> results) {
  return {CollectiveKind::kReduce, op, 0, std::move(values), std::move(results)};
}

Collective Collective::broadcast(std::vector<PerReplica> values, std::vector<PerReplica> results, int root) {
  return {CollectiveKind::kBroadcast, ReduceOp::kSum, root, std::move(values), std::move(results)};
}

Collective Collective::reduce_scatter(ReduceOp op, std::vector<PerReplica> values,
                                      std::vector<PerReplica> results) {
  return {CollectiveKind::kReduceScatter, op, 0, std::move(values), std::move(results)};
}

Collective Collective::all_gather(std::vector<PerReplica> values, std::vector<PerReplica> results) {
  return {CollectiveKind::kAllGather, ReduceOp::kSum, 0, std::move(values), std::move(results)};
}

Collective Collective::scatter(std::vector<PerReplica> values, std::vector<PerReplica> results, int root) {
  return {CollectiveKind::kScatter, ReduceOp::kSum, root, std::move(values), std::move(results)};
}

Collective Collective::all_to_all(std::vector<PerReplica> values, std::vector<PerReplica> results,
                                  std::vector<std::vector<std::size_t>> splits) {
  return {CollectiveKind::kAllToAll, ReduceOp::kSum,     0,
          std::move(values),         std::move(results), std::move(splits)};
}

namespace api {

CallTraits traits_of(const Collective& call) noexcept {
  return {name_of(call.kind).kind, call.op, 0, true, call.root, call.has_equal_parts, call.receiver};
}

Pairs pairs_of(const Collective& call) {
  return {call.values.size(), &call, [](const void* self, std::size_t i) {
            const auto& its = *static_cast<const Collective*>(self);
            Pair pair{&its.values[i], {}, &its.results[i]};
            pair.splits = its.splits;
            return pair;
          }};
}

namespace {

void check_kind(CollectiveKind kind) {
  if (static_cast<std::size_t>(kind) < kNames.size()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no collective has the number {}", static_cast<int>(kind)));
}

}  // namespace

void check(const Collective& call, const planner::Policy& policy, int workers) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", to_string(call.kind), why));
  };
  check_kind(call.kind);
  if (call.values.size() != call.results.size()) {
    refuse(fmt::format("{} values and {} results; expected a result for every value", call.values.size(),
                       call.results.size()));
  }
  if (call.root < 0 || call.root >= workers)
    refuse(fmt::format("root {}; the cluster has {} worker(s)", call.root, workers));
  if (call.receiver < -1 || call.receiver >= workers)
    refuse(fmt::format("receiver {}; the cluster has {} worker(s)", call.receiver, workers));
  const bool may_have_receiver = call.kind == CollectiveKind::kReduce ||
                                 call.kind == CollectiveKind::kBroadcast ||
                                 call.kind == CollectiveKind::kAllGather;
  if (call.receiver >= 0 && !may_have_receiver)
    refuse("a receiver is for reduce, broadcast and all_gather only");
  if (policy.has_accumulation_fn && call.kind == CollectiveKind::kReduceScatter) {
    refuse(fmt::format("{} has an accumulation_fn, which takes whole values; use one without, or reduce",
                       policy.name));
  }
  if (call.splits.empty()) return;
  if (call.kind != CollectiveKind::kAllToAll) refuse("splits are for all_to_all only");
  if (call.values.size() != 1) refuse(fmt::format("splits for {} tensors; expected one", call.values.size()));
  if (call.splits.size() != call.values.front().size()) {
    refuse(fmt::format("{} splits for {} replicas of this process; expected one for each", call.splits.size(),
                       call.values.front().size()));
  }
}

namespace {

// As equal parts as can be.
std::vector<std::size_t> parts_of(std::size_t elements, std::size_t parts) {
  std::vector<std::size_t> sizes(parts, parts == 0 ? 0 : elements / parts);
  for (std::size_t i = 0; i < (parts == 0 ? 0 : elements % parts); ++i) ++sizes[i];
  return sizes;
}

// Of a result of a replica's size, or of parts of all replicas.
Shape shape_of_result(const CollectiveSpec& spec, std::size_t part, std::size_t replicas) {
  const auto row = [](std::size_t elements) { return Shape{static_cast<std::int64_t>(elements)}; };
  switch (spec.kind) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kScatter:
      return row(part);
    case CollectiveKind::kAllGather:
      return row(spec.tensor.shape.elements() * replicas);
    case CollectiveKind::kAllToAll:
      return row(part * replicas);
    default:
      return spec.tensor.shape;
  }
}

planner::PairInfo pair_of(const CollectiveSpec& spec) {
  const ReduceSpec& tensor = spec.tensor;
  const bool has_root = planner::has_root(name_of(spec.kind).kind);
  if (has_root && (spec.root < 0 || static_cast<std::size_t>(spec.root) >= tensor.replicas.size())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: root {}; the tensor has {} replica(s)", to_string(spec.kind), spec.root,
                            tensor.replicas.size()));
  }
  planner::PairInfo pair;
  pair.destinations = tensor.destinations;
  pair.in_place_of.assign(tensor.destinations.size(), -1);
  for (std::size_t r = 0; r < tensor.replicas.size(); ++r) {
    if (has_root && r != static_cast<std::size_t>(spec.root)) continue;
    pair.replicas.push_back({{tensor.dtype, tensor.shape, tensor.replicas[r]}, {}, {}});
  }
  const std::vector<std::size_t> parts = parts_of(tensor.shape.elements(), tensor.destinations.size());
  const bool reduces = spec.kind == CollectiveKind::kReduce || spec.kind == CollectiveKind::kReduceScatter;
  const DType dtype = reduces ? result_dtype(spec.op, tensor.dtype) : tensor.dtype;
  for (std::size_t d = 0; d < parts.size(); ++d) {
    const Shape shape = shape_of_result(spec, parts[d], pair.replicas.size());
    pair.results.push_back({{dtype, shape, tensor.destinations[d]}, {}, {}});
  }
  if (spec.kind == CollectiveKind::kAllToAll) pair.splits.assign(pair.replicas.size(), parts);
  return pair;
}

}  // namespace

planner::Request request_of(const CollectiveSpec& spec, const CommunicationOptions& options) {
  check_kind(spec.kind);
  planner::Request request;
  request.kind = name_of(spec.kind).kind;
  request.op = spec.op;
  request.into = true;
  request.only_planned = true;
  request.options = options;
  request.pairs.push_back(pair_of(spec));
  return request;
}

}  // namespace api
}  // namespace onesum
