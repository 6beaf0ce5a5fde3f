// Tests of the emulated GPU run in child processes: its environment is read once, and its threads do not
// survive a fork, so the process of the tests never calls it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sys/types.h>

#include "emulated_gpu/emulated_gpu.h"

namespace onesum::testing {

using Environment = std::map<std::string, std::string>;
using Body = std::function<std::string()>;

struct Ended {
  std::string text;    // what the body returned, or "threw: …"
  std::string errors;  // what went to stderr
  int signal = 0;      // that killed it
  int code = 0;        // with which it exited
};

class Child {
 public:
  Child(const Environment& environment, const Body& body);
  ~Child();  // kills it if nobody has waited
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  Ended wait();

 private:
  pid_t process_ = -1;
  int text_ = -1;
  int errors_ = -1;
};

// With two devices, unless the environment says otherwise; it exits as a program does.
Ended in_child(const Environment& environment, const Body& body);

// Violations are only counted.
inline Environment counting(Environment more = {}) {
  more.emplace("EMULATED_GPU_VIOLATIONS", "count");
  return more;
}

// Throw where CUDA or NCCL refuse.
void check(cudaError_t error);
void check(ncclResult_t error);

struct StreamOwner {
  explicit StreamOwner(int device = 0);
  ~StreamOwner();
  StreamOwner(const StreamOwner&) = delete;
  StreamOwner& operator=(const StreamOwner&) = delete;
  cudaStream_t get = nullptr;
};

struct EventOwner {
  explicit EventOwner(int device = 0, unsigned flags = cudaEventDisableTiming);
  ~EventOwner();
  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;
  cudaEvent_t get = nullptr;
};

template <class T>
struct DeviceOwner {
  explicit DeviceOwner(std::size_t count, int device = 0) {
    check(cudaSetDevice(device));
    check(cudaMalloc(reinterpret_cast<void**>(&get), count * sizeof(T)));
    check(cudaSetDevice(0));
  }
  ~DeviceOwner() { cudaFree(get); }
  DeviceOwner(const DeviceOwner&) = delete;
  DeviceOwner& operator=(const DeviceOwner&) = delete;
  T* get = nullptr;
};

template <class T>
struct PinnedOwner {
  explicit PinnedOwner(std::size_t count) {
    check(cudaHostAlloc(reinterpret_cast<void**>(&get), count * sizeof(T), cudaHostAllocDefault));
  }
  ~PinnedOwner() { cudaFreeHost(get); }
  PinnedOwner(const PinnedOwner&) = delete;
  PinnedOwner& operator=(const PinnedOwner&) = delete;
  T* get = nullptr;
};

}  // namespace onesum::testing
