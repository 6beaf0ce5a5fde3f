// NCCL, opened when somebody asks for it: this library runs without it. It is never closed, since it has
// threads.
#pragma once

#include <memory>
#include <string>

#include <nccl.h>

namespace onesum::engine::nccl {

// The functions we call, found in the file.
struct Library {
  std::string file;
  int version = 0;  // as NCCL_VERSION has it

  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;

  std::string name() const;  // "NCCL 2.28.9"

  // "unhandled system error: Call to connect failed", in the library's words. `comm` may be null.
  std::string words(ncclResult_t result, ncclComm_t comm) const;
};

// Throws unavailable if there is none, or if it is too old.
std::shared_ptr<const Library> open_library();

}  // namespace onesum::engine::nccl
