#include "api/replica_call.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/error.h>

#include "base/combine.h"

namespace onesum::api {
namespace {

constexpr std::size_t kMaxDescribed = 3;  // values of a list that messages show

// "SUM", "BITAND".
std::string shouted(ReduceOp op) {
  std::string name(name_of(op));
  for (char& letter : name) letter = static_cast<char>(letter - 'a' + 'A');
  return name;
}

// Slices may differ in their number of rows: it is left out.
std::string describe(const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    return fmt::format("{} {}", to_string(tensor->dtype()), tensor->shape().to_string());
  }
  const auto& slices = std::get<IndexedSlices>(value);
  return fmt::format("slices of {} {}", to_string(slices.values.dtype()),
                     slices.dense_shape ? slices.dense_shape->to_string() : "rows");
}

bool is_same_form(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<Tensor>(&a)) {
    const auto& other = std::get<Tensor>(b);
    return tensor->dtype() == other.dtype() && tensor->shape() == other.shape();
  }
  const auto& slices = std::get<IndexedSlices>(a);
  const auto& other = std::get<IndexedSlices>(b);
  return slices.values.dtype() == other.values.dtype() && slices.dense_shape == other.dense_shape;
}

bool is_same(const CommunicationOptions& a, const CommunicationOptions& b) {
  const auto fields = [](const CommunicationOptions& options) {
    return std::tie(options.bytes_per_pack, options.timeout, options.implementation, options.numerics,
                    options.sparse_rows);
  };
  return fields(a) == fields(b);
}

std::optional<std::size_t> first_difference(const ReplicaCall& a, const ReplicaCall& b) {
  const auto [end, _] =
      std::mismatch(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), is_same_form);
  if (end == a.values.end()) return {};
  return static_cast<std::size_t>(end - a.values.begin());
}

PerReplica argument(std::span<ReplicaCall* const> calls, std::size_t index) {
  std::vector<Value> components;
  components.reserve(calls.size());
  for (const ReplicaCall* call : calls) components.push_back(call->values[index]);
  return PerReplica(std::move(components));
}

std::vector<PerReplica> run_call(MirroredStrategy& strategy, std::span<ReplicaCall* const> calls) {
  const ReplicaCall& call = *calls.front();
  std::vector<PerReplica> values;
  values.reserve(call.values.size());
  for (std::size_t i = 0; i < call.values.size(); ++i) values.push_back(argument(calls, i));
  if (call.merge != nullptr) return (*call.merge)(strategy, values);

  std::vector<ValueDestination> pairs;
  pairs.reserve(values.size());
  for (const PerReplica& value : values) pairs.push_back({value, value});
  const std::vector<Mirrored> sums = strategy.cross_device_ops().batch_reduce(call.op, pairs, call.options);
  return {sums.begin(), sums.end()};
}

const Tensor& main_tensor(const Value& value) {
  const auto* tensor = std::get_if<Tensor>(&value);
  return tensor != nullptr ? *tensor : std::get<IndexedSlices>(value).values;
}

const Value& component_for(const PerReplica& result, const Device& device, std::size_t index) {
  for (const Value& value : result.values()) {
    if (is_on(device, value)) return value;
  }
  if (result.size() == 1) return result.value(0);
  std::vector<std::string> names;
  for (const Device& found : result.devices()) names.push_back(found.to_string());
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("merge_call: result {} of the function has no component for the replica on {}; it has them "
                  "on {}",
                  index, device.to_string(), fmt::join(names, ", ")));
}

}  // namespace

bool is_on(const Device& device, const Value& value) {
  const Tensor& tensor = main_tensor(value);
  return tensor && (tensor.device() == device || tensor.device().canonical(device.host()) == device);
}

void refuse_value(const Device& device, const Value& value, const std::string& what) {
  const Tensor& tensor = main_tensor(value);
  const std::string found = tensor ? "is on " + tensor.device().to_string() : "refers to nothing";
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} {}; expected a value on the replica's device, {}",
                                                       what, found, device.to_string()));
}

std::string describe(const ReplicaCall& call) {
  const std::size_t count = call.values.size();
  if (call.merge != nullptr) return fmt::format("merge_call({} value{})", count, count == 1 ? "" : "s");
  std::string text = fmt::format("all_reduce({}, ", shouted(call.op));
  if (count != 1) text += fmt::format("{} values{}", count, count == 0 ? "" : ": ");
  for (std::size_t i = 0; i < std::min(count, kMaxDescribed); ++i) {
    text += (i == 0 ? "" : ", ") + describe(call.values[i]);
  }
  return text + (count > kMaxDescribed ? ", …)" : ")");
}

bool is_same_call(const ReplicaCall& a, const ReplicaCall& b) {
  if ((a.merge == nullptr) != (b.merge == nullptr) || a.values.size() != b.values.size()) return false;
  return a.merge != nullptr || (a.op == b.op && is_same(a.options, b.options) && !first_difference(a, b));
}

std::string describe_beside(const ReplicaCall& call, const ReplicaCall& other) {
  const bool differs_in_head = (call.merge == nullptr) != (other.merge == nullptr) || call.op != other.op ||
                               call.values.size() != other.values.size();
  if (differs_in_head) return describe(call);
  const auto index = first_difference(call, other);
  if (!index) return describe(call) + " with other options";
  if (*index < kMaxDescribed) return describe(call);
  return fmt::format("all_reduce({}, {} values) with {} as value {}", shouted(call.op), call.values.size(),
                     describe(call.values[*index]), *index);
}

void execute(MirroredStrategy& strategy, std::span<ReplicaCall* const> calls) {
  const std::vector<PerReplica> results = run_call(strategy, calls);
  const std::span<const Device> devices = strategy.devices();
  for (std::size_t replica = 0; replica < calls.size(); ++replica) {
    std::vector<Value>& mine = calls[replica]->results;
    mine.reserve(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      mine.push_back(component_for(results[i], devices[replica], i));
    }
  }
}

}  // namespace onesum::api
