#include "gpu/cuda_calls.h"

#include <algorithm>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace onesum::testing {
namespace {

// Not linked: the emulated library is found as a user's would be.
template <class F>
F* function(const char* name) {
  static void* const library = dlopen("libcudart.so.13", RTLD_NOW);
  return reinterpret_cast<F*>(dlsym(library, name));
}
#define ONESUM_CUDA_CALL(name) function<decltype(name)>(#name)

void check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess); }

void run_function(void* function) { (*static_cast<std::function<void()>*>(function))(); }

}  // namespace

CallerStream::CallerStream(int device, StreamKind kind) : device_(device) {
  if (kind == StreamKind::kDefault) return;
  check(ONESUM_CUDA_CALL(cudaSetDevice)(device_));
  check(ONESUM_CUDA_CALL(cudaStreamCreateWithFlags)(&stream_, cudaStreamNonBlocking));
}

CallerStream::~CallerStream() {
  synchronize();
  if (stream_ != nullptr) check(ONESUM_CUDA_CALL(cudaStreamDestroy)(stream_));
}

void CallerStream::copy(void* to, const void* from, std::size_t bytes) {
  check(ONESUM_CUDA_CALL(cudaSetDevice)(device_));
  check(ONESUM_CUDA_CALL(cudaMemcpyAsync)(to, from, bytes, cudaMemcpyDefault, stream_));
}

void CallerStream::call(std::function<void()>& function_to_call) {
  check(ONESUM_CUDA_CALL(cudaSetDevice)(device_));
  check(ONESUM_CUDA_CALL(cudaLaunchHostFunc)(stream_, run_function, &function_to_call));
}

void CallerStream::synchronize() {
  check(ONESUM_CUDA_CALL(cudaSetDevice)(device_));
  check(ONESUM_CUDA_CALL(cudaStreamSynchronize)(stream_));
}

bool CallerStream::is_done() {
  check(ONESUM_CUDA_CALL(cudaSetDevice)(device_));
  return ONESUM_CUDA_CALL(cudaStreamQuery)(stream_) == cudaSuccess;
}

CallerMemory::CallerMemory(int device, std::span<const float> contents)
    : device_(device), count_(contents.size()) {
  check(ONESUM_CUDA_CALL(cudaSetDevice)(device));
  // C++ has overloads of these.
  check(function<cudaError_t(void**, std::size_t)>("cudaMalloc")(&memory_, count_ * sizeof(float)));
  void* pinned = nullptr;
  check(function<cudaError_t(void**, std::size_t, unsigned)>("cudaHostAlloc")(&pinned, count_ * sizeof(float),
                                                                              cudaHostAllocPortable));
  pinned_ = static_cast<float*>(pinned);
  std::ranges::copy(contents, pinned_);
}

CallerMemory::~CallerMemory() {
  check(ONESUM_CUDA_CALL(cudaFree)(memory_));
  check(ONESUM_CUDA_CALL(cudaFreeHost)(pinned_));
}

Tensor CallerMemory::tensor(const CallerStream& stream) const {
  return Tensor::borrow(memory_, DType::kFloat32, {static_cast<std::int64_t>(count_)},
                        "GPU:" + std::to_string(device_), stream.get());
}

void CallerMemory::fill(CallerStream& stream) { stream.copy(memory_, pinned_, count_ * sizeof(float)); }

void CallerMemory::read(CallerStream& stream) { stream.copy(pinned_, memory_, count_ * sizeof(float)); }

}  // namespace onesum::testing
