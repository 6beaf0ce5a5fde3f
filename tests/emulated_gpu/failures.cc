#include "emulated_gpu/failures.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/settings.h"

namespace onesum::emulated {
namespace {

struct Kind {
  std::string_view name;
  int usual_code;
};

// In the order of Failure.
constexpr std::array kKinds = {
    Kind{"malloc", cudaErrorMemoryAllocation},
    Kind{"host_alloc", cudaErrorMemoryAllocation},
    Kind{"copy", cudaErrorIllegalAddress},
    Kind{"launch", cudaErrorLaunchFailure},
    Kind{"stream_create", cudaErrorMemoryAllocation},
    Kind{"event_create", cudaErrorMemoryAllocation},
    Kind{"event_record", cudaErrorInvalidResourceHandle},
    Kind{"collective_hang", ncclSuccess},
    Kind{"collective_async_error", ncclRemoteError},
    Kind{"comm_init", ncclSystemError},
};

struct Planned {
  std::size_t left = 0;  // calls until the one that fails
  std::optional<int> code;
};

class Failures {
 public:
  Failures() { read(settings().failures); }

  bool plan(std::string_view name, std::size_t after_n, int code) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      if (kKinds[kind].name != name) continue;
      const std::lock_guard lock(mutex_);
      planned_[kind] = {after_n, code == 0 ? kKinds[kind].usual_code : code};
      return true;
    }
    return false;
  }

  std::optional<int> take(Failure kind) {
    const std::lock_guard lock(mutex_);
    Planned& planned = planned_[static_cast<std::size_t>(kind)];
    if (!planned.code) return std::nullopt;
    if (planned.left > 0) {
      --planned.left;
      return std::nullopt;
    }
    return std::exchange(planned.code, std::nullopt);
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    planned_ = {};
  }

 private:
  void read(const std::string& text) {
    for (const char* at = text.c_str(); *at != '\0';) {
      char name[32];
      std::size_t after_n = 0;
      int code = 0;
      int length = 0;
      bool is_good = std::sscanf(at, "%31[a-z_]:%zu%n", name, &after_n, &length) == 2;
      if (is_good && at[length] == ':') {
        at += length;
        is_good = std::sscanf(at, ":%d%n", &code, &length) == 1;
      }
      if (!is_good || !plan(name, after_n, code)) {
        std::fprintf(stderr, "emulated GPU: EMULATED_GPU_FAIL is \"%s\", expected kind:after_n[:code],...\n",
                     text.c_str());
        std::abort();
      }
      at += length;
      if (*at == ',') ++at;
    }
  }

  std::mutex mutex_;
  std::array<Planned, kKinds.size()> planned_;
};

Failures& failures() {
  static Failures& result = *new Failures;
  return result;
}

}  // namespace

std::optional<int> take_failure(Failure kind) { return failures().take(kind); }

void forget_failures() { failures().forget(); }

bool is_sticky(int code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace onesum::emulated

extern "C" bool emulated_gpu_fail(const char* kind, std::size_t after_n, int code) {
  return onesum::emulated::failures().plan(kind, after_n, code);
}
