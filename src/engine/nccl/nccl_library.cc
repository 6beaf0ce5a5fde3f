#include "engine/nccl/nccl_library.h"

#include <dlfcn.h>
#include <link.h>

#include <onesum/error.h>

#include "base/log.h"

namespace onesum::engine::nccl {
namespace {

constexpr char kFile[] = "libnccl.so.2";
// The first in which all that we do with communicators that do not block works.
constexpr int kOldest = NCCL_VERSION(2, 18, 0);

[[noreturn]] void cannot_use(const std::string& reason) {
  throw Error(ErrorCode::kUnavailable, "NCCL cannot be used: " + reason);
}

std::string version_text(int version) {
  const int major = version < 10000 ? 1000 : 10000;  // a digit more since 2.9
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : kFile;
}

template <class F>
void find(void* library, const std::string& file, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) cannot_use(file + " has no " + name);
}

int version_of(void* library, const std::string& file) {
  decltype(&ncclGetVersion) get_version = nullptr;
  find(library, file, "ncclGetVersion", get_version);
  int version = 0;
  if (get_version(&version) != ncclSuccess) cannot_use(file + " does not know its version");
  if (version < kOldest) {
    cannot_use(file + " is of version " + version_text(version) + ", expected " + version_text(kOldest) +
               " or later");
  }
  return version;
}

}  // namespace

std::string Library::name() const { return "NCCL " + version_text(version); }

std::string Library::words(ncclResult_t result, ncclComm_t comm) const {
  std::string text = get_error_string(result);
  const char* const last = get_last_error(comm);
  if (last != nullptr && *last != '\0') text.append(": ").append(last);
  return text;
}

std::shared_ptr<const Library> open_library() {
  void* const opened = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) cannot_use(dlerror());  // names the file, or which library it misses
  const auto library = std::make_shared<Library>();
  const std::string& file = library->file = path_of(opened);
  library->version = version_of(opened, file);
  find(opened, file, "ncclGetErrorString", library->get_error_string);
  find(opened, file, "ncclGetLastError", library->get_last_error);
  find(opened, file, "ncclGetUniqueId", library->get_unique_id);
  find(opened, file, "ncclCommInitRankConfig", library->comm_init_rank_config);
  find(opened, file, "ncclCommGetAsyncError", library->comm_get_async_error);
  find(opened, file, "ncclCommFinalize", library->comm_finalize);
  find(opened, file, "ncclCommDestroy", library->comm_destroy);
  find(opened, file, "ncclCommAbort", library->comm_abort);
  find(opened, file, "ncclGroupStart", library->group_start);
  find(opened, file, "ncclGroupEnd", library->group_end);
  find(opened, file, "ncclAllReduce", library->all_reduce);
  find(opened, file, "ncclReduce", library->reduce);
  find(opened, file, "ncclBroadcast", library->broadcast);
  log(LogLevel::kInfo, library->name() + " is " + file);
  return library;
}

}  // namespace onesum::engine::nccl
