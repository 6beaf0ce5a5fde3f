// What tests ask the emulated GPU, beside the functions of CUDA and NCCL. All functions are in
// libcudart.so.13 (and in libnccl.so.2, which is the same file); a program that is not linked to it finds
// them by dlsym.
//
// Read once from the environment, at the first call:
//   EMULATED_GPU_DEVICES=n        number of devices; 0 (default): cudaErrorNoDevice
//   CUDA_VISIBLE_DEVICES=n,...    those of them that the process sees, as with CUDA; default all
//   EMULATED_GPU_DRIVER=none      no driver: cudaErrorInsufficientDriver, counts stay untouched
//   EMULATED_GPU_PEERS=all|none|0-1,2-3   who can access whose memory, once enabled; default all
//   EMULATED_GPU_MEMORY=bytes     of each device; default 1 GiB
//   EMULATED_GPU_DELAY_US=n       each operation of a stream starts up to n microseconds late; default 0
//   EMULATED_GPU_SEED=n           of these delays
//   EMULATED_GPU_ALLOW_DEFAULT_STREAM=1   otherwise an operation on the default stream is a violation
//   EMULATED_GPU_HOST=process|thread      whose knowledge orders operations: what any thread of the process
//                                 has seen complete (default), or what the enqueueing thread has seen itself.
//                                 With `thread`, threads that hand work to each other look unordered.
//   EMULATED_GPU_FREE=strict|synchronise  freeing memory of operations that the host does not know complete
//   is
//                                 a violation (default), or waits for the device, as CUDA does
//   EMULATED_GPU_INIT_SECONDS=n   after which a blocking ncclCommInitRank that waits is a violation; default
//   30 EMULATED_GPU_VIOLATIONS=abort|count   what follows a violation's message; default abort
//   EMULATED_GPU_LEAKS=print|fail what follows leaks at the exit; with `fail` the exit code is 86
//   EMULATED_GPU_FAIL=kind:after_n[:code],...   as emulated_gpu_fail
#pragma once

#include <cstddef>

extern "C" {

typedef struct {
  std::size_t device_allocations;
  std::size_t device_bytes;
  std::size_t pinned_allocations;
  std::size_t pinned_bytes;
  std::size_t registered_ranges;
  std::size_t streams;
  std::size_t events;
  std::size_t communicators;
} EmulatedGpuLive;

// What exists at the moment.
void emulated_gpu_live(EmulatedGpuLive* live);

// How many rules were broken since the start or the last reset.
std::size_t emulated_gpu_violations();

// The last violation's text, "" if there was none; valid until the calling thread asks again.
const char* emulated_gpu_last_violation();

// How many were enqueued of a kind: copy, fill, launch, host_function, event_record, event_wait, all_reduce,
// reduce, broadcast; or how many calls there were: malloc, host_alloc. Another kind: 0.
std::size_t emulated_gpu_operations(const char* kind);

// The call or operation of this kind after the next `after_n` fails, once. Kinds and the code that 0 means:
//   malloc, host_alloc, stream_create, event_create   cudaErrorMemoryAllocation
//   event_record                                      cudaErrorInvalidResourceHandle
//   copy                                              cudaErrorIllegalAddress
//   launch                                            cudaErrorLaunchFailure
//   comm_init                                         ncclSystemError
//   collective_hang                                   none: it hangs until ncclCommAbort
//   collective_async_error                            ncclRemoteError; it hangs, too
// A copy or launch that fails with a code that ends a context (illegal address, launch failure, ...) fails
// when its turn comes: all calls on its device return the code from then on, until emulated_gpu_reset. With
// any other code the call itself fails, and nothing else. Returns whether there is such a kind.
bool emulated_gpu_fail(const char* kind, std::size_t after_n, int code);

// Forgets violations, operations counted, failures asked for and errors of devices. What lives stays.
void emulated_gpu_reset();
}
