// Collectives of c10d that only move elements: broadcast, gathers, scatter, all-to-all.
#include <utility>

#include "backend.h"
#include "values.h"

namespace onesum::bridge {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int kAll = -1;

// Each of `inputs` to the list of `outputs` that the receiver has for it, or everybody.
void gather_rows(Group& group, const Tensors& inputs, const std::vector<Tensors>& outputs, int receiver,
                 bool has_equal_parts, const CommunicationOptions& options) {
  std::vector<Row> values;
  std::vector<Row> results;
  Collective call{CollectiveKind::kAllGather, ReduceOp::kSum, 0, {}, {}};
  call.has_equal_parts = has_equal_parts;
  call.receiver = receiver;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(Row::filled({inputs[i]}, Use::kMoved));
    call.values.emplace_back(values.back().tensor());
    if (outputs.empty()) {  // for others
      call.results.emplace_back();
      continue;
    }
    results.push_back(Row::blank(outputs[i], Use::kMoved));
    call.results.emplace_back(results.back().tensor());
  }
  group.ops.run(call, options);
  for (const Row& row : results) row.give_back();
}

std::vector<Tensors> as_lists(const Tensors& tensors) {
  std::vector<Tensors> lists;
  for (const at::Tensor& tensor : tensors) lists.push_back({tensor});
  return lists;
}

Tensors flattened(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

void check_lists(const std::vector<Tensors>& lists, const Tensors& like, int size, const char* call) {
  TORCH_CHECK_VALUE(lists.size() == like.size() && !like.empty(), "onesum: ", call, " of ", like.size(),
                    " tensors with ", lists.size(), " lists; expected a list for each, not none");
  for (std::size_t i = 0; i < lists.size(); ++i) {
    TORCH_CHECK_VALUE(lists[i].size() == static_cast<std::size_t>(size), "onesum: ", call, " with a list of ",
                      lists[i].size(), " tensors; expected one for each of the ", size, " members");
    check_dense(like[i], call);
    check_alike(lists[i], like[i], call);
  }
}

// Of a tensor that is shared out along its first dimension, the elements of each part.
std::vector<std::size_t> parts_of(const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int size,
                                  const char* which) {
  TORCH_CHECK_VALUE(splits.size() == static_cast<std::size_t>(size), "onesum: all_to_all_single with ",
                    splits.size(), " ", which, " splits; expected one for each of the ", size, " members");
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) sum += split;
  TORCH_CHECK_VALUE(sum == rows, "onesum: all_to_all_single: the ", which, " splits sum to ", sum,
                    "; the tensor's first dimension has ", rows);
  const std::int64_t row = rows == 0 ? 0 : tensor.numel() / rows;
  std::vector<std::size_t> parts;
  for (const std::int64_t split : splits) parts.push_back(static_cast<std::size_t>(split * row));
  return parts;
}

}  // namespace

OnesumBackend::WorkPtr OnesumBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only_one_of(tensors, "broadcast");
  check_dense(tensor, "broadcast");
  Call call{"broadcast", c10d::OpType::BROADCAST, tensors, tensors, options.timeout, options.asyncOp};
  const auto root = static_cast<int>(options.rootRank);
  call.run = [group = group_, tensor, root, is_root = root == rank_](const CommunicationOptions& how) {
    const Row row = is_root ? Row::filled({tensor}, Use::kMoved) : Row::blank({tensor}, Use::kMoved);
    const PerReplica its(row.tensor());
    group->ops.run(Collective::broadcast({is_root ? its : PerReplica()}, {its}, root), how);
    if (!is_root) row.give_back();
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& options) {
  only_one_of(inputs, "all_gather");
  return allgather_coalesced(outputs, inputs, options);
}

OnesumBackend::WorkPtr OnesumBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
  check_lists(outputs, inputs, size_, "all_gather");
  bool are_equal = true;
  for (const Tensors& list : outputs) are_equal = are_equal && have_equal_sizes(list);
  const auto type = inputs.size() == 1 ? c10d::OpType::ALLGATHER : c10d::OpType::ALLGATHER_COALESCED;
  Call call{"all_gather", type, inputs, flattened(outputs), options.timeout, options.asyncOp};
  call.run = [group = group_, inputs, outputs, are_equal](const CommunicationOptions& how) {
    gather_rows(*group, inputs, outputs, kAll, are_equal, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::all_gather_single(at::Tensor& output, at::Tensor& input,
                                                        const c10d::AllgatherOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return all_gather_single_coalesced(outputs, inputs, options);
}

OnesumBackend::WorkPtr OnesumBackend::all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                                                  const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(!outputs.empty() && outputs.size() == inputs.size(), "onesum: all_gather of ",
                    inputs.size(), " inputs into ", outputs.size(), " outputs; expected as many, not none");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_dense(inputs[i], "all_gather");
    check_alike({outputs[i]}, inputs[i], "all_gather");
  }
  const auto type =
      outputs.size() == 1 ? c10d::OpType::_ALLGATHER_BASE : c10d::OpType::ALLGATHER_INTO_TENSOR_COALESCED;
  Call call{"all_gather", type, inputs, outputs, options.timeout, options.asyncOp};
  call.run = [group = group_, inputs, lists = as_lists(outputs)](const CommunicationOptions& how) {
    gather_rows(*group, inputs, lists, kAll, true, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::gather(TensorLists& outputs, Tensors& inputs,
                                             const c10d::GatherOptions& options) {
  const at::Tensor& input = only_one_of(inputs, "gather");
  check_dense(input, "gather");
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = root == rank_;
  if (is_root) check_lists(outputs, inputs, size_, "gather");
  TensorLists lists = is_root ? outputs : TensorLists{};
  Call call{"gather", c10d::OpType::GATHER, inputs, flattened(lists), options.timeout, options.asyncOp};
  call.run = [group = group_, inputs, lists, root](const CommunicationOptions& how) {
    gather_rows(*group, inputs, lists, root, true, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::gather_single(at::Tensor& output, at::Tensor& input,
                                                    const c10d::GatherOptions& options) {
  check_dense(input, "gather");
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = root == rank_;
  if (is_root) check_alike({output}, input, "gather");
  TensorLists lists = is_root ? TensorLists{{output}} : TensorLists{};
  Tensors inputs{input};
  Call call{"gather", c10d::OpType::GATHER, inputs, flattened(lists), options.timeout, options.asyncOp};
  call.run = [group = group_, inputs, lists, root](const CommunicationOptions& how) {
    gather_rows(*group, inputs, lists, root, true, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                              const c10d::ScatterOptions& options) {
  const at::Tensor& output = only_one_of(outputs, "scatter");
  check_dense(output, "scatter");
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = root == rank_;
  if (is_root) check_lists(inputs, outputs, size_, "scatter");
  Tensors parts = is_root ? inputs.front() : Tensors{};
  Call call{"scatter", c10d::OpType::SCATTER, parts, outputs, options.timeout, options.asyncOp};
  call.run = [group = group_, parts, output, root](const CommunicationOptions& how) {
    std::optional<Row> value;
    if (!parts.empty()) value = Row::filled(parts, Use::kMoved);
    const Row result = Row::blank({output}, Use::kMoved);
    Collective its =
        Collective::scatter({value ? PerReplica(value->tensor()) : PerReplica()}, {result.tensor()}, root);
    its.has_equal_parts = true;
    group->ops.run(its, how);
    result.give_back();
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                               const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(!inputs.empty(), "onesum: all_to_all of no tensors");
  check_lists({outputs, inputs}, {inputs.front(), inputs.front()}, size_, "all_to_all");
  std::vector<std::size_t> parts;
  for (const at::Tensor& input : inputs) parts.push_back(static_cast<std::size_t>(input.numel()));
  Call call{"all_to_all", c10d::OpType::ALLTOALL, inputs, outputs, options.timeout, options.asyncOp};
  call.run = [group = group_, inputs, outputs, parts](const CommunicationOptions& how) {
    const Row value = Row::filled(inputs, Use::kMoved);
    const Row result = Row::blank(outputs, Use::kMoved);
    group->ops.run(Collective::all_to_all({value.tensor()}, {result.tensor()}, {parts}), how);
    result.give_back();
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::all_to_all_single(at::Tensor& output, at::Tensor& input,
                                                        std::vector<std::int64_t>& output_splits,
                                                        std::vector<std::int64_t>& input_splits,
                                                        const c10d::AllToAllOptions& options) {
  check_dense(input, "all_to_all_single");
  check_alike({output}, input, "all_to_all_single");
  // Splits of one side only: the other's are equal, and sizes are told all the same.
  const bool has_splits = !output_splits.empty() || !input_splits.empty();
  std::vector<std::vector<std::size_t>> splits;
  if (!output_splits.empty()) parts_of(output, output_splits, size_, "output");
  if (!input_splits.empty()) splits = {parts_of(input, input_splits, size_, "input")};
  Call call{"all_to_all_single", c10d::OpType::ALLTOALL_BASE, {input}, {output}, options.timeout,
            options.asyncOp};
  call.run = [group = group_, input, output, splits, has_splits](const CommunicationOptions& how) {
    const Row value = Row::filled({input}, Use::kMoved);
    const Row result = Row::blank({output}, Use::kMoved);
    Collective its = Collective::all_to_all({value.tensor()}, {result.tensor()}, splits);
    its.has_equal_parts = !has_splits;
    group->ops.run(its, how);
    result.give_back();
  };
  return start(std::move(call));
}

}  // namespace onesum::bridge
