#include "engine/gpu.h"

#include <filesystem>
#include <vector>

#include <dlfcn.h>
#include <link.h>

#include <onesum/version.h>

namespace onesum::engine {
namespace {

constexpr char kPlugin[] = "libonesum_cuda.so";

// The library or program that this code is part of.
std::filesystem::path own_file(std::error_code& error) {
  Dl_info info;
  link_map* map = nullptr;
  const void* const here = reinterpret_cast<const void*>(&find_gpus);
  const bool is_known = dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  const bool is_library = is_known && map != nullptr && *map->l_name != '\0';  // programs have no name there
  return std::filesystem::canonical(is_library ? map->l_name : "/proc/self/exe", error);
}

// Where the plug-in may be: named by the user, or beside the library or program.
std::vector<std::string> candidates(const GpuOptions& options) {
  if (options.plugin) return {*options.plugin};
  std::vector<std::string> found;
  std::error_code error;
  const std::filesystem::path folder = own_file(error).parent_path();
  for (const char* const place : {".", "../lib", "../lib/onesum"}) {
    const std::filesystem::path file = folder / place / kPlugin;
    if (!error && std::filesystem::exists(file, error)) found.push_back(file.lexically_normal().string());
  }
  return found;
}

// `error` names the file, or the library that it misses.
std::string why_not_opened(const std::string& file, const std::string& error) {
  if (error.starts_with(file)) return error;
  std::string reason = file + " cannot be opened: " + error;
  if (error.starts_with("libcudart")) {
    reason += "; it is part of CUDA 13, whose folder of libraries belongs into LD_LIBRARY_PATH";
  }
  return reason;
}

}  // namespace

GpuSearch find_gpus(const GpuOptions& options) {
  GpuSearch search;
  const std::vector<std::string> files = candidates(options);
  if (files.empty()) {
    search.reason = "the kernels for GPUs were not built: there is no " + std::string(kPlugin) +
                    " beside this program or library";
    return search;
  }
  void* const library = dlopen(files.front().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    search.reason = why_not_opened(files.front(), dlerror());
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
