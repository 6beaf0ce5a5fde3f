#include "engine/gpu.h"

#include <filesystem>
#include <vector>

#include <dlfcn.h>

#include <onesum/version.h>

namespace onesum::engine {
namespace {

constexpr char kPlugin[] = "libonesum_cuda.so";

// Where the plug-in may be: named by the user, or beside the library or program that this code is part of.
std::vector<std::string> candidates(const GpuOptions& options) {
  if (options.plugin) return {*options.plugin};
  std::vector<std::string> found;
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&find_gpus), &self) != 0 && self.dli_fname != nullptr) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(self.dli_fname, error).parent_path();
    for (const char* const place : {".", "../lib", "../lib/onesum"}) {
      const std::filesystem::path file = folder / place / kPlugin;
      if (!error && std::filesystem::exists(file, error)) found.push_back(file.lexically_normal().string());
    }
  }
  return found;
}

}  // namespace

GpuSearch find_gpus(const GpuOptions& options) {
  GpuSearch search;
  const std::vector<std::string> files = candidates(options);
  if (files.empty()) {
    search.reason = std::string(kPlugin) + " is not beside this library: it was built without CUDA";
    return search;
  }
  void* const library = dlopen(files.front().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    search.reason = dlerror();  // names the file, and which library it misses
    return search;
  }
  search.plugin = files.front();
  const auto open = reinterpret_cast<OpenGpus>(dlsym(library, kOpenGpus));
  if (open == nullptr) {
    search.reason = files.front() + " is not a plug-in of onesum";
    return search;
  }
  search.platform.reset(open(ONESUM_VERSION, options, search.reason));
  return search;
}

}  // namespace onesum::engine
