// The ops, as TensorFlow sees them. python/onesum/tensorflow calls them, and nobody else is meant to.
#include <cstdint>

#include <tensorflow/core/framework/op.h>
#include <tensorflow/core/framework/shape_inference.h>

namespace onesum::tf_bridge {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status handles(InferenceContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, context->Scalar());
  return absl::OkStatus();
}

absl::Status unknown_shapes(InferenceContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, context->UnknownShape());
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
    .Attr("source: {'local', 'environment', 'embedded', 'given'}")
    .Attr("address: int = 0")  // 'given': of a Cluster of this process, which is copied
    .Attr("worker_devices: list(string)")
    .Attr("devices_per_worker: int")
    .Output("cluster: resource")
    .SetIsStateful()
    .SetShapeFn(handles);

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
    .SetShapeFn(handles);

#define ONESUM_OPTIONS                     \
  Attr("bytes_per_pack: int = 0")          \
      .Attr("timeout_ms: int = 0")         \
      .Attr("implementation: string = ''") \
      .Attr("is_waited_for: bool = false") \
      .SetIsStateful()

// Many tensors as one, and many again.
REGISTER_OP("OnesumBundle")
    .Input("values: T")
    .Output("bundle: variant")
    .Attr("T: list(type) >= 1")
    .SetShapeFn(handles);

REGISTER_OP("OnesumUnbundle")
    .Input("bundle: variant")
    .Output("values: T")
    .Attr("T: list(type) >= 1")
    .SetShapeFn(unknown_shapes);

// A bundle for each replica; results likewise, or one only.
REGISTER_OP("OnesumReduce")
    .Input("cluster: resource")
    .Input("object: resource")
    .Input("values: replicas * variant")
    .Output("sums: results * variant")
    .Attr("replicas: int >= 1")
    .Attr("results: int >= 1")
    .Attr("reduce_op: {'SUM', 'MEAN'}")
    .ONESUM_OPTIONS.SetShapeFn(handles);

// Indexed slices: bundles of all values, then all indices, then all dense shapes or none.
REGISTER_OP("OnesumReduceSparse")
    .Input("cluster: resource")
    .Input("object: resource")
    .Input("values: replicas * variant")
    .Output("sum: variant")
    .Attr("replicas: int >= 1")
    .Attr("has_dense_shapes: bool")
    .Attr("reduce_op: {'SUM', 'MEAN'}")
    .ONESUM_OPTIONS.SetShapeFn(handles);

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
