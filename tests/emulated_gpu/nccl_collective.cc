// The collectives of NCCL: checks of one rank's call, and its way onto a stream.
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nccl.h>

#include "emulated_gpu/communicator.h"
#include "emulated_gpu/failures.h"
#include "emulated_gpu/nccl_group.h"
#include "emulated_gpu/sums.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

bool brings(const CollectiveCall& call) {
  return call.kind != Counted::kBroadcast || call.communicator->traits().rank == call.root;
}

bool gets(const CollectiveCall& call) {
  return call.kind != Counted::kReduce || call.communicator->traits().rank == call.root;
}

ncclResult_t check(const CollectiveCall& call, ncclRedOp_t op) {
  const std::string name = call.name;
  const int ranks = call.communicator->traits().ranks;
  if (op != ncclSum) {
    return violate(ncclInvalidArgument,
                   name + " with operation " + std::to_string(op) + ", emulated is ncclSum");
  }
  if (size_of(call.dtype) == 0) {
    return violate(ncclInvalidArgument, name + " with type " + std::to_string(call.dtype));
  }
  if (call.root < 0 || call.root >= ranks) {
    return violate(ncclInvalidArgument, name + " with root " + std::to_string(call.root) + " of " +
                                            std::to_string(ranks) + " ranks");
  }
  if (!call.communicator->is_ready()) {
    return violate(ncclInvalidArgument,
                   name + " before ncclCommGetAsyncError has said that the communicator is ready");
  }
  return ncclSuccess;
}

// NCCL connects ranks at their first collective: a thread that calls them one by one waits for itself.
ncclResult_t check_lone_call(const CollectiveCall& call) {
  Communicator& communicator = *call.communicator;
  if (!communicator.traits().is_blocking) return ncclSuccess;
  const std::lock_guard lock(world().mutex);
  const std::thread::id thread = std::this_thread::get_id();
  for (const auto& sibling : siblings_of(communicator)) {
    if (sibling->lone_caller == thread && sibling->calls == communicator.calls + 1) {
      return violate(ncclInvalidUsage, std::string(call.name) + " of ranks " +
                                           std::to_string(sibling->traits().rank) + " and " +
                                           std::to_string(communicator.traits().rank) +
                                           " by one thread, outside a group");
    }
  }
  communicator.lone_caller = thread;
  return ncclSuccess;
}

ncclResult_t find_use(const CollectiveCall& call, const void* address, bool is_written,
                      std::vector<Use>& uses) {
  const Range range = Range::of(address, call.count * size_of(call.dtype));
  if (range.is_empty()) return ncclSuccess;
  const int device = call.communicator->traits().device;
  const std::string what = std::string(call.name) + (is_written ? " writes " : " reads ") + range.text();
  if (range.begin % size_of(call.dtype) != 0) {
    return violate(ncclInvalidArgument,
                   what + ", which is not aligned to " + std::to_string(size_of(call.dtype)) + " bytes");
  }
  const std::shared_ptr<Allocation> allocation = world().memory.find(address);
  if (allocation == nullptr) {
    return violate(ncclInvalidArgument, what + ", which " + world().memory.obituary(address));
  }
  if (!allocation->holds(range)) {
    return violate(ncclInvalidArgument, what + ", which is not inside " + allocation->text());
  }
  if (allocation->kind == MemoryKind::kDevice && allocation->device != device) {
    return violate(ncclInvalidArgument,
                   what + " for device " + std::to_string(device) + ", but this is " + allocation->text());
  }
  uses.push_back({range, is_written, allocation});
  return ncclSuccess;
}

ncclResult_t find_uses(const CollectiveCall& call, std::vector<Use>& uses) {
  if (brings(call)) {
    if (const ncclResult_t error = find_use(call, call.send, false, uses); error != ncclSuccess) return error;
  }
  if (gets(call)) {
    if (const ncclResult_t error = find_use(call, call.receive, true, uses); error != ncclSuccess)
      return error;
  }
  if (uses.size() == 2 && uses[0].range.begin != uses[1].range.begin &&
      uses[0].range.overlaps(uses[1].range)) {
    return violate(ncclInvalidUsage, std::string(call.name) + " from " + uses[0].range.text() + " to " +
                                         uses[1].range.text() + ", which overlap without being the same");
  }
  return ncclSuccess;
}

Communicator::Collective collective_of(const CollectiveCall& call, const std::vector<Use>& uses) {
  Communicator::Collective result;
  result.frame = {.type = FrameType::kCollective,
                  .rank = call.communicator->traits().rank,
                  .kind = static_cast<std::int32_t>(call.kind),
                  .dtype = static_cast<std::int32_t>(call.dtype),
                  .root = call.root,
                  .count = call.count};
  result.bytes = call.count * size_of(call.dtype);
  for (const Use& use : uses) {
    std::byte* const memory = use.allocation->alias_of(use.range.begin);
    if (use.is_written) {
      result.gets = memory;
    } else {
      result.brings = memory;
    }
  }
  if (take_failure(Failure::kCollectiveHang)) result.mishap = Communicator::Mishap::kHang;
  if (const auto failure = take_failure(Failure::kCollectiveAsyncError)) {
    result.mishap = Communicator::Mishap::kAsyncError;
    result.error = *failure;
  }
  return result;
}

ncclResult_t launch_one(const CollectiveCall& call) {
  const std::lock_guard lock(world().mutex);
  const Communicator::Traits& traits = call.communicator->traits();
  std::shared_ptr<Stream> stream;
  if (world().find_stream(call.stream, call.name, stream) != cudaSuccess) return ncclInvalidArgument;
  if (stream->traits().device != traits.device) {
    return violate(ncclInvalidArgument, std::string(call.name) + " of a communicator of device " +
                                            std::to_string(traits.device) + " on a stream of device " +
                                            std::to_string(stream->traits().device));
  }
  if (error_of(traits.device) != cudaSuccess) return ncclUnhandledCudaError;
  world().check_turn(traits.device, call.name);
  std::vector<Use> uses;
  if (const ncclResult_t error = find_uses(call, uses); error != ncclSuccess) return error;
  const Communicator::Collective collective = collective_of(call, uses);
  const std::string what = std::string(call.name) + " of rank " + std::to_string(traits.rank);
  world().enqueue({call.kind, what, stream, uses,
                   [communicator = call.communicator, collective, turn = call.communicator->take_turn()] {
                     communicator->run(collective, turn);
                   }});
  ++call.communicator->calls;
  if (!traits.is_blocking) call.communicator->launch_on(stream);
  return ncclSuccess;
}

ncclResult_t submit(const CollectiveCall& call, ncclRedOp_t op) {
  ncclResult_t error = check(call, op);
  if (group().depth > 0) {
    if (error == ncclSuccess) {
      group().calls.push_back(call);
    } else if (group().error == ncclSuccess) {
      group().error = error;
    }
    return error;
  }
  if (error == ncclSuccess) error = check_lone_call(call);
  return error == ncclSuccess ? launch({&call, 1}) : error;
}

}  // namespace

ncclResult_t launch(std::span<const CollectiveCall> calls) {
  ncclResult_t result = ncclSuccess;
  for (const CollectiveCall& call : calls) {
    if (const ncclResult_t error = launch_one(call); error != ncclSuccess) return error;
    if (!call.communicator->traits().is_blocking) result = ncclInProgress;
  }
  return result;
}

}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are NCCL's

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t dtype,
                           ncclRedOp_t op, ncclComm_t handle, cudaStream_t stream) {
  const auto communicator = find(handle, "ncclAllReduce");
  if (communicator == nullptr) return ncclInvalidArgument;
  return submit({Counted::kAllReduce, "ncclAllReduce", communicator, send, receive, count, dtype, 0, stream},
                op);
}

ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t dtype,
                        ncclRedOp_t op, int root, ncclComm_t handle, cudaStream_t stream) {
  const auto communicator = find(handle, "ncclReduce");
  if (communicator == nullptr) return ncclInvalidArgument;
  return submit({Counted::kReduce, "ncclReduce", communicator, send, receive, count, dtype, root, stream},
                op);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t dtype, int root,
                           ncclComm_t handle, cudaStream_t stream) {
  const auto communicator = find(handle, "ncclBroadcast");
  if (communicator == nullptr) return ncclInvalidArgument;
  return submit(
      {Counted::kBroadcast, "ncclBroadcast", communicator, send, receive, count, dtype, root, stream},
      ncclSum);
}
}
