#include "call_kernel.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <tensorflow/core/framework/resource_mgr.h>

namespace onesum::tf_bridge {
namespace {

namespace tf = ::tensorflow;

absl::StatusCode status_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return absl::StatusCode::kInvalidArgument;
    case ErrorCode::kUnimplemented:
      return absl::StatusCode::kUnimplemented;
    case ErrorCode::kUnavailable:
      return absl::StatusCode::kUnavailable;
    case ErrorCode::kDeadlineExceeded:
      return absl::StatusCode::kDeadlineExceeded;
    case ErrorCode::kAborted:
      return absl::StatusCode::kAborted;
    case ErrorCode::kResourceExhausted:
      return absl::StatusCode::kResourceExhausted;
    case ErrorCode::kInternal:
      return absl::StatusCode::kInternal;
  }
  return absl::StatusCode::kUnknown;
}

Implementation implementation_of(const std::string& name) {
  if (name == "RING") return Implementation::kRing;
  if (name == "NCCL") return Implementation::kNccl;
  return Implementation::kAuto;
}

}  // namespace

absl::Status status_of(const std::function<void()>& what) noexcept {
  try {
    what();
    return absl::OkStatus();
  } catch (const Error& error) {
    return {status_code_of(error.code()), error.what()};
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("onesum: no memory left");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

CallKernel::CallKernel(tf::OpKernelConstruction* construction) : AsyncOpKernel(construction) {
  std::int64_t bytes_per_pack = 0;
  std::int64_t timeout_ms = 0;
  std::string implementation;
  OP_REQUIRES_OK(construction, construction->GetAttr("bytes_per_pack", &bytes_per_pack));
  OP_REQUIRES_OK(construction, construction->GetAttr("timeout_ms", &timeout_ms));
  OP_REQUIRES_OK(construction, construction->GetAttr("implementation", &implementation));
  OP_REQUIRES_OK(construction, construction->GetAttr("is_waited_for", &is_waited_for_));
  options_.bytes_per_pack = static_cast<std::size_t>(bytes_per_pack);
  if (timeout_ms != 0) options_.timeout = std::chrono::milliseconds(timeout_ms);
  options_.implementation = implementation_of(implementation);
}

void CallKernel::ComputeAsync(tf::OpKernelContext* context, DoneCallback done) {
  tf::core::RefCountPtr<Object> found;
  OP_REQUIRES_OK_ASYNC(context, tf::LookupResource(context, tf::HandleFromInput(context, 1), &found), done);
  // The handle among the inputs keeps it alive until done() is called.
  const Object* const object = found.get();
  auto turn = [this, context, object, done = std::move(done)] {
    context->SetStatus(status_of([&] { call(*context, *object); }));
    done();
  };
  if (is_waited_for_) {
    object->sequence().run_now(turn);
  } else {
    object->sequence().post(std::move(turn));
  }
}

ReduceOp reduce_op_of(tf::OpKernelConstruction* construction) {
  std::string name;
  const absl::Status status = construction->GetAttr("reduce_op", &name);
  if (!status.ok()) construction->SetStatus(status);
  return name == "MEAN" ? ReduceOp::kMean : ReduceOp::kSum;
}

}  // namespace onesum::tf_bridge
