#include "gpu/emulator.h"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

namespace onesum::testing {
namespace {

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function != nullptr) return;
  std::fprintf(stderr, "libcudart.so.13 is not the emulated GPU, it has no %s: see LD_LIBRARY_PATH\n", name);
  std::exit(EXIT_FAILURE);
}

Emulator open_emulator() {
  setenv("EMULATED_GPU_DEVICES", "8", 1);
  setenv("EMULATED_GPU_VIOLATIONS", "count", 1);
  void* const library = dlopen("libcudart.so.13", RTLD_NOW);
  Emulator found;
  find(library, "emulated_gpu_live", found.live);
  find(library, "emulated_gpu_violations", found.violations);
  find(library, "emulated_gpu_last_violation", found.last_violation);
  find(library, "emulated_gpu_operations", found.operations);
  find(library, "emulated_gpu_fail", found.fail);
  find(library, "emulated_gpu_reset", found.reset);
  find(library, "cudaGetDevice", found.get_device);
  find(library, "cudaSetDevice", found.set_device);
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(found.live), &info) != 0) found.file = info.dli_fname;
  return found;
}

}  // namespace

const Emulator& emulator() {
  static const Emulator found = open_emulator();
  return found;
}

}  // namespace onesum::testing
