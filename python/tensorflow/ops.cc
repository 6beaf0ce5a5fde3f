// The ops, as TensorFlow sees them. python/onesum/tensorflow calls them, and nobody else is meant to.
#include <cstdint>
#include <string>
#include <vector>

#include <tensorflow/core/framework/op.h>
#include <tensorflow/core/framework/shape_inference.h>

namespace onesum::tf_bridge {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status one_handle(InferenceContext* context) {
  context->set_output(0, context->Scalar());
  return absl::OkStatus();
}

// A result has the shape that all replicas of its value have.
absl::Status like_replicas(InferenceContext* context) {
  std::int64_t replicas = 1;
  TF_RETURN_IF_ERROR(context->GetAttr("replicas", &replicas));
  std::vector<ShapeHandle> values;
  TF_RETURN_IF_ERROR(context->input("values", &values));
  const std::size_t tensors = values.size() / static_cast<std::size_t>(replicas);
  std::vector<ShapeHandle> merged(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(tensors));
  for (std::size_t i = tensors; i < values.size(); ++i) {
    // Replicas that differ are refused by the call, which can say which ones.
    if (!context->Merge(merged[i % tensors], values[i], &merged[i % tensors]).ok()) {
      merged[i % tensors] = context->UnknownShape();
    }
  }
  for (int i = 0; i < context->num_outputs(); ++i) {
    context->set_output(i, merged[static_cast<std::size_t>(i) % tensors]);
  }
  return absl::OkStatus();
}

// Rows of the shape that the replicas' rows have, as many as all workers have together.
absl::Status like_rows(InferenceContext* context) {
  std::vector<ShapeHandle> values;
  TF_RETURN_IF_ERROR(context->input("values", &values));
  const int tensors = context->num_outputs() / 2;
  for (int i = 0; i < tensors; ++i) {
    ShapeHandle rows = values[static_cast<std::size_t>(i)];
    if (context->RankKnown(rows) && context->Rank(rows) > 0) {
      TF_RETURN_IF_ERROR(context->ReplaceDim(rows, 0, context->UnknownDim(), &rows));
    }
    context->set_output(i, rows);
    context->set_output(tensors + i, context->Vector(InferenceContext::kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status like_value(InferenceContext* context) {
  context->set_output(0, context->input(2));
  return absl::OkStatus();
}

absl::Status longer_along_axis(InferenceContext* context) {
  std::int64_t axis = 0;
  TF_RETURN_IF_ERROR(context->GetAttr("axis", &axis));
  ShapeHandle shape = context->input(2);
  if (context->RankKnown(shape)) {
    const std::int64_t rank = context->Rank(shape);
    if (axis >= -rank && axis < rank) {
      TF_RETURN_IF_ERROR(context->ReplaceDim(shape, axis, context->UnknownDim(), &shape));
    }
  }
  context->set_output(0, shape);
  return absl::OkStatus();
}

REGISTER_OP("OnesumCluster")
    .Attr("source: {'local', 'environment', 'embedded'}")
    .Attr("worker_devices: list(string)")
    .Attr("devices_per_worker: int")
    .Output("cluster: resource")
    .SetIsStateful()
    .SetShapeFn(one_handle);

REGISTER_OP("OnesumObject")
    .Input("cluster: resource")
    .Attr(
        "kind: {'ReductionToOneDevice', 'AllReduceCrossDeviceOps', 'NcclAllReduce', "
        "'HierarchicalCopyAllReduce', 'MultiWorkerAllReduce'}")
    .Attr("reduce_to_device: string = ''")
    .Attr("all_reduce: string = ''")
    .Attr("num_packs: int = 0")
    .Attr("agg_small_grads_max_bytes: int = 0")
    .Attr("agg_small_grads_max_group: int = 10")
    .Attr("worker_devices: list(string) = []")
    .Attr("num_gpus_per_worker: int = 0")
    .Output("object: resource")
    .SetIsStateful()
    .SetShapeFn(one_handle);

#define ONESUM_OPTIONS                     \
  Attr("bytes_per_pack: int = 0")          \
      .Attr("timeout_ms: int = 0")         \
      .Attr("implementation: string = ''") \
      .Attr("is_waited_for: bool = false") \
      .SetIsStateful()

// values: all tensors of the first replica, then those of the second, and so on; results likewise, either one
// for each replica or one only.
REGISTER_OP("OnesumReduce")
    .Input("cluster: resource")
    .Input("object: resource")
    .Input("values: T")
    .Output("results: Tresults")
    .Attr("T: list(type) >= 1")
    .Attr("Tresults: list(type) >= 1")
    .Attr("replicas: int >= 1")
    .Attr("reduce_op: {'SUM', 'MEAN'}")
    .ONESUM_OPTIONS.SetShapeFn(like_replicas);

// Indexed slices: in the same order, with or without dense shapes.
REGISTER_OP("OnesumReduceSparse")
    .Input("cluster: resource")
    .Input("object: resource")
    .Input("values: T")
    .Input("indices: Tindices")
    .Input("dense_shapes: Tshapes")
    .Output("result_values: Tresults")
    .Output("result_indices: Tresult_indices")
    .Attr("T: list(type) >= 1")
    .Attr("Tindices: list({int32, int64}) >= 1")
    .Attr("Tshapes: list({int32, int64}) >= 0")
    .Attr("Tresults: list(type) >= 1")
    .Attr("Tresult_indices: list({int32, int64}) >= 1")
    .Attr("replicas: int >= 1")
    .Attr("reduce_op: {'SUM', 'MEAN'}")
    .ONESUM_OPTIONS.SetShapeFn(like_rows);

REGISTER_OP("OnesumBroadcast")
    .Input("cluster: resource")
    .Input("object: resource")
    .Input("value: T")
    .Output("result: T")
    .Attr("T: type")
    .ONESUM_OPTIONS.SetShapeFn(like_value);

REGISTER_OP("OnesumGather")
    .Input("cluster: resource")
    .Input("object: resource")
    .Input("values: replicas * T")
    .Output("result: T")
    .Attr("T: type")
    .Attr("replicas: int >= 1")
    .Attr("axis: int")
    .ONESUM_OPTIONS.SetShapeFn(longer_along_axis);

#undef ONESUM_OPTIONS

}  // namespace
}  // namespace onesum::tf_bridge
