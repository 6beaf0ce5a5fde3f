#include "cli/bench_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/machine.h"

namespace onesum::cli {
namespace {

std::optional<std::size_t> status_field(std::string_view key) {
  return memory_field("/proc/self/status", key);
}

}  // namespace

std::optional<std::size_t> resident_memory() {
  const auto own = status_field("RssAnon");
  const auto shared = status_field("RssShmem");
  if (!own || !shared) return std::nullopt;
  return *own + *shared;
}

bool reset_peak_memory() noexcept {
  const Fd file(open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  return file.is_open() && write(file.get(), "5", 1) == 1;
}

std::optional<std::size_t> peak_memory() {
  const auto peak = status_field("VmHWM");
  const auto of_files =
      status_field("RssFile");  // the program itself, which hardly changes while it measures
  if (!peak || !of_files || *of_files > *peak) return std::nullopt;
  return *peak - *of_files;
}

}  // namespace onesum::cli
