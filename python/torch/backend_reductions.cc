// Reductions of c10d: all-reduce, reduce, reduce-scatter.
#include <utility>

#include "backend.h"
#include "sparse.h"
#include "values.h"

namespace onesum::bridge {
namespace {

using Tensors = std::vector<at::Tensor>;

// In place, all in one call.
void all_reduce(Group& group, const Tensors& tensors, const c10d::ReduceOp& op,
                const CommunicationOptions& options) {
  std::vector<Row> rows;
  std::vector<PerReplica> values;
  for (const at::Tensor& tensor : tensors) {
    if (op.op_ == c10d::ReduceOp::PREMUL_SUM) tensor.copy_(scaled_for(op, tensor));
    rows.push_back(Row::filled({tensor}, Use::kReduced));
    values.emplace_back(rows.back().tensor());
  }
  const ReduceOp its = reduce_op_of(op, tensors.front().scalar_type(), "all_reduce");
  group.ops.run(Collective::reduce(its, values, values), options);
  for (const Row& row : rows) row.give_back();
}

void reduce_scatter_rows(Group& group, const std::vector<Tensors>& inputs, const Tensors& outputs,
                         const c10d::ReduceOp& op, const CommunicationOptions& options) {
  std::vector<Row> values;
  std::vector<Row> results;
  Collective call{CollectiveKind::kReduceScatter, ReduceOp::kSum, 0, {}, {}};
  call.op = reduce_op_of(op, outputs.front().scalar_type(), "reduce_scatter");
  call.has_equal_parts = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensors parts;
    for (const at::Tensor& input : inputs[i]) parts.push_back(scaled_for(op, input));
    values.push_back(Row::filled(parts, Use::kReduced));
    results.push_back(Row::blank({outputs[i]}, Use::kReduced));
    call.values.emplace_back(values.back().tensor());
    call.results.emplace_back(results.back().tensor());
    call.has_equal_parts = call.has_equal_parts && have_equal_sizes(inputs[i]);
  }
  group.ops.run(call, options);
  for (const Row& row : results) row.give_back();
}

}  // namespace

OnesumBackend::WorkPtr OnesumBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only_one_of(tensors, "all_reduce");
  if (tensor.is_sparse()) return allreduce_sparse(tensors, options);
  check_dense(tensor, "all_reduce");
  reduce_op_of(options.reduceOp, tensor.scalar_type(), "all_reduce");
  Call call{"all_reduce", c10d::OpType::ALLREDUCE, tensors, tensors, options.timeout, options.asyncOp};
  call.run = [group = group_, its = tensors, op = options.reduceOp](const CommunicationOptions& how) {
    all_reduce(*group, its, op, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::allreduce_sparse(Tensors& tensors,
                                                       const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only_one_of(tensors, "all_reduce");
  check_sparse(tensor, options.reduceOp);
  Call call{"all_reduce", c10d::OpType::_ALLREDUCE_SPARSE, {}, tensors, options.timeout, options.asyncOp};
  call.run = [group = group_, tensor, op = options.reduceOp](const CommunicationOptions& how) {
    all_reduce_sparse(group->ops, tensor, op, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::allreduce_coalesced(Tensors& tensors,
                                                          const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK_VALUE(!tensors.empty(), "onesum: all_reduce_coalesced of no tensors");
  check_alike(tensors, tensors.front(), "all_reduce_coalesced");
  reduce_op_of(options.reduceOp, tensors.front().scalar_type(), "all_reduce_coalesced");
  Call call{"all_reduce_coalesced", c10d::OpType::ALLREDUCE_COALESCED, tensors, tensors, options.timeout,
            options.asyncOp};
  call.run = [group = group_, its = tensors, op = options.reduceOp](const CommunicationOptions& how) {
    all_reduce(*group, its, op, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only_one_of(tensors, "reduce");
  check_dense(tensor, "reduce");
  const ReduceOp its = reduce_op_of(options.reduceOp, tensor.scalar_type(), "reduce");
  Call call{"reduce", c10d::OpType::REDUCE, tensors, tensors, options.timeout, options.asyncOp};
  const auto root = static_cast<int>(options.rootRank);
  call.run = [group = group_, tensor, its, op = options.reduceOp, root,
              is_root = root == rank_](const CommunicationOptions& how) {
    const Row row = Row::filled({scaled_for(op, tensor)}, Use::kReduced);
    Collective to_root =
        Collective::reduce(its, {row.tensor()}, {is_root ? PerReplica(row.tensor()) : PerReplica()});
    to_root.receiver = root;
    group->ops.run(to_root, how);
    if (!is_root) return;
    row.give_back();
    if (op.op_ == c10d::ReduceOp::PREMUL_SUM) tensor.copy_(row.at_tensor().view(tensor.sizes()));
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only_one_of(outputs, "reduce_scatter");
  TORCH_CHECK_VALUE(inputs.size() == 1 && inputs.front().size() == static_cast<std::size_t>(size_),
                    "onesum: reduce_scatter takes a list of as many tensors as the group has members, ",
                    size_);
  check_dense(output, "reduce_scatter");
  check_alike(inputs.front(), output, "reduce_scatter");
  reduce_op_of(options.reduceOp, output.scalar_type(), "reduce_scatter");
  Call call{"reduce_scatter", c10d::OpType::REDUCE_SCATTER, inputs.front(), outputs, options.timeout,
            options.asyncOp};
  call.run = [group = group_, inputs, outputs, op = options.reduceOp](const CommunicationOptions& how) {
    reduce_scatter_rows(*group, inputs, outputs, op, how);
  };
  return start(std::move(call));
}

OnesumBackend::WorkPtr OnesumBackend::reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                                            const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return reduce_scatter_single_coalesced(outputs, inputs, options);
}

OnesumBackend::WorkPtr OnesumBackend::reduce_scatter_single_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(!outputs.empty() && outputs.size() == inputs.size(), "onesum: reduce_scatter of ",
                    inputs.size(), " inputs into ", outputs.size(), " outputs; expected as many, not none");
  check_alike(outputs, outputs.front(), "reduce_scatter");
  check_alike(inputs, outputs.front(), "reduce_scatter");
  reduce_op_of(options.reduceOp, outputs.front().scalar_type(), "reduce_scatter");
  const auto type = outputs.size() == 1 ? c10d::OpType::_REDUCE_SCATTER_BASE
                                        : c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
  Call call{"reduce_scatter", type, inputs, outputs, options.timeout, options.asyncOp};
  std::vector<Tensors> lists;
  for (const at::Tensor& input : inputs) lists.push_back({input});
  call.run = [group = group_, lists, outputs, op = options.reduceOp](const CommunicationOptions& how) {
    reduce_scatter_rows(*group, lists, outputs, op, how);
  };
  return start(std::move(call));
}

}  // namespace onesum::bridge
