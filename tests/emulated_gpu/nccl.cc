// The functions of NCCL that concern communicators, and groups of calls. Collectives: nccl_collective.cc.
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include "emulated_gpu/communicator.h"
#include "emulated_gpu/meeting.h"
#include "emulated_gpu/nccl_group.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/violations.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {

Group& group() {
  thread_local Group result;
  return result;
}

std::string& last_nccl_error() {
  thread_local std::string result;
  return result;
}

ncclResult_t violate(ncclResult_t error, const std::string& text) {
  last_nccl_error() = text;
  report_violation(text + ", called from " + Place::of_caller().text());
  return error;
}

std::shared_ptr<Communicator> find(ncclComm_t handle, const char* call) {
  std::shared_ptr<Communicator> found = find_communicator(handle);
  if (found == nullptr) {
    violate(ncclInvalidArgument, std::string(call) + " with communicator " + hex(handle) +
                                     ", which is destroyed, aborted or unknown");
  }
  return found;
}

namespace {

ncclResult_t wait_until_met(Communicator& communicator) {
  const std::chrono::seconds at_most(settings().init_seconds);
  const ncclResult_t result = communicator.wait_until_met(at_most);
  if (result != ncclInProgress) return result;
  return violate(ncclSystemError,
                 "rank " + std::to_string(communicator.traits().rank) + " of " +
                     std::to_string(communicator.traits().ranks) + " has waited " +
                     std::to_string(at_most.count()) +
                     " s in ncclCommInitRank: outside a group, a thread must not have several ranks");
}

ncclResult_t init(ncclComm_t* handle, int ranks, const ncclUniqueId& id, int rank, bool is_blocking) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return ncclUnhandledCudaError;
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return violate(ncclInvalidArgument,
                   "ncclCommInitRank of rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  const std::string meeting(id.internal, strnlen(id.internal, sizeof(id.internal)));
  const auto communicator = std::make_shared<Communicator>(
      Communicator::Traits{meeting, ranks, rank, current_device(), is_blocking});
  *handle = enlist(communicator);
  if (group().depth > 0) {
    group().starting.push_back(communicator);
    return ncclSuccess;
  }
  communicator->start();
  return is_blocking ? wait_until_met(*communicator) : ncclInProgress;
}

// What the group has gathered, as one call.
ncclResult_t end_group() {
  const Group gathered = std::exchange(group(), {});
  if (gathered.error != ncclSuccess) return gathered.error;
  ncclResult_t result = ncclSuccess;
  for (const auto& communicator : gathered.starting) communicator->start();
  for (const auto& communicator : gathered.starting) {
    const ncclResult_t met =
        communicator->traits().is_blocking ? wait_until_met(*communicator) : ncclInProgress;
    if (result == ncclSuccess || result == ncclInProgress) result = met == ncclSuccess ? result : met;
  }
  if (gathered.calls.empty() || (result != ncclSuccess && result != ncclInProgress)) return result;
  const ncclResult_t launched = launch(gathered.calls);
  return launched == ncclSuccess ? result : launched;
}

}  // namespace
}  // namespace onesum::emulated

using namespace onesum::emulated;  // NOLINT(google-build-using-namespace): the functions below are NCCL's

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::string name = open_meeting();
  if (name.empty()) return ncclSystemError;
  *id = {};
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  return init(communicator, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  constexpr unsigned kMagic = 0xcafebeef;
  if (config != nullptr && config->magic != kMagic) {
    return violate(ncclInvalidArgument,
                   "ncclCommInitRankConfig with a config that is not NCCL_CONFIG_INITIALIZER");
  }
  const bool is_blocking = config == nullptr || config->blocking != 0;
  return init(communicator, ranks, id, rank, is_blocking);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const auto communicator = find(handle, "ncclCommGetAsyncError");
  if (communicator == nullptr) return ncclInvalidArgument;
  *error = communicator->poll();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const auto communicator = find(handle, "ncclCommAbort");
  if (communicator == nullptr) return ncclInvalidArgument;
  forget_communicator(handle);
  communicator->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const auto communicator = find(handle, "ncclCommFinalize");
  if (communicator == nullptr) return ncclInvalidArgument;
  if (!communicator->is_ready()) {
    return violate(ncclInvalidArgument, "ncclCommFinalize while something before it is still in progress");
  }
  const bool waits = communicator->traits().is_blocking;
  communicator->finalize(waits);
  return waits ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const auto communicator = find(handle, "ncclCommDestroy");
  if (communicator == nullptr) return ncclInvalidArgument;
  forget_communicator(handle);
  const ncclResult_t error = communicator->poll();
  if (error != ncclSuccess) {
    communicator->abort();
    return violate(ncclInvalidUsage, std::string("ncclCommDestroy of a communicator in state \"") +
                                         ncclGetErrorString(error) + "\", expected ncclCommAbort");
  }
  communicator->finalize(true);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t handle, int* count) {
  const auto communicator = find(handle, "ncclCommCount");
  if (communicator == nullptr) return ncclInvalidArgument;
  *count = communicator->traits().ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t handle, int* rank) {
  const auto communicator = find(handle, "ncclCommUserRank");
  if (communicator == nullptr) return ncclInvalidArgument;
  *rank = communicator->traits().rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t handle, int* device) {
  const auto communicator = find(handle, "ncclCommCuDevice");
  if (communicator == nullptr) return ncclInvalidArgument;
  *device = communicator->traits().device;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group().depth == 0) return violate(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group().depth > 0) return ncclSuccess;
  return end_group();
}

const char* ncclGetErrorString(ncclResult_t error) {
  switch (error) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t /*communicator*/) { return last_nccl_error().c_str(); }
}
