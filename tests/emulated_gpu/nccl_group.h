// Calls of NCCL between ncclGroupStart and ncclGroupEnd, of one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "emulated_gpu/communicator.h"
#include "emulated_gpu/statistics.h"

namespace onesum::emulated {

struct CollectiveCall {
  Counted kind;
  const char* name;
  std::shared_ptr<Communicator> communicator;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t dtype;
  int root;
  cudaStream_t stream;
};

struct Group {
  int depth = 0;
  std::vector<std::shared_ptr<Communicator>> starting;
  std::vector<CollectiveCall> calls;
  ncclResult_t error = ncclSuccess;  // the first of a call inside: the group does nothing then
};

// The calling thread's.
Group& group();

// Enqueues them; ncclInProgress if one of their communicators does not block.
ncclResult_t launch(std::span<const CollectiveCall> calls);

std::string& last_nccl_error();  // the calling thread's
// Reports and returns it.
ncclResult_t violate(ncclResult_t error, const std::string& text);
// Reports one that is not there.
std::shared_ptr<Communicator> find(ncclComm_t handle, const char* call);

}  // namespace onesum::emulated
