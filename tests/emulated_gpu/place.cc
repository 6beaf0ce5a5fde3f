#include "emulated_gpu/place.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <execinfo.h>

namespace onesum::emulated {
namespace {

void* own_module() {
  static void* const result = [] {
    Dl_info info{};
    return dladdr(reinterpret_cast<void*>(&Place::of_caller), &info) == 0 ? nullptr : info.dli_fbase;
  }();
  return result;
}

}  // namespace

Place Place::of_caller() {
  std::array<void*, 12> all{};
  const int count = backtrace(all.data(), static_cast<int>(all.size()));
  Place result;
  std::size_t kept = 0;
  for (int i = 0; i < count && kept < result.frames_.size(); ++i) {
    Dl_info info{};
    void* const frame = all[static_cast<std::size_t>(i)];
    if (kept == 0 && dladdr(frame, &info) != 0 && info.dli_fbase == own_module()) continue;
    result.frames_[kept++] = frame;
  }
  return result;
}

std::string Place::text() const {
  std::string result;
  for (void* frame : frames_) {
    Dl_info info{};
    if (frame == nullptr || dladdr(frame, &info) == 0 || info.dli_fname == nullptr) continue;
    const char* slash = std::strrchr(info.dli_fname, '/');
    char offset[32];
    std::snprintf(offset, sizeof(offset), "+0x%zx",
                  static_cast<std::size_t>(static_cast<char*>(frame) - static_cast<char*>(info.dli_fbase)));
    if (!result.empty()) result += " < ";
    result += slash == nullptr ? info.dli_fname : slash + 1;
    result += offset;
    if (info.dli_sname != nullptr) result += std::string(" (") + info.dli_sname + ")";
  }
  return result;
}

}  // namespace onesum::emulated
