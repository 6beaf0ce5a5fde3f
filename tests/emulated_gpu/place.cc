#include "emulated_gpu/place.h"

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
  std::array<void*, 24> all{};
  const auto count = static_cast<std::size_t>(backtrace(all.data(), static_cast<int>(all.size())));
  std::size_t first = 0;  // behind the last of our own
  for (std::size_t i = 0; i < count; ++i) {
    Dl_info info{};
    if (dladdr(all[i], &info) != 0 && info.dli_fbase == own_module()) first = i + 1;
  }
  Place result;
  for (std::size_t i = 0; i < result.frames_.size() && first + i < count; ++i) {
    result.frames_[i] = all[first + i];
  }
  return result;
}

void Place::write(Text& text) const {
  const char* before = "";
  for (void* frame : frames_) {
    Dl_info info{};
    if (frame == nullptr || dladdr(frame, &info) == 0 || info.dli_fname == nullptr) continue;
    const char* slash = std::strrchr(info.dli_fname, '/');
    text.add("%s%s+0x%zx", before, slash == nullptr ? info.dli_fname : slash + 1,
             static_cast<std::size_t>(static_cast<char*>(frame) - static_cast<char*>(info.dli_fbase)));
    if (info.dli_sname != nullptr) text.add(" (%s)", info.dli_sname);
    before = " < ";
  }
}

}  // namespace onesum::emulated
