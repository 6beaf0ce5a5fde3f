#include "emulated_gpu/violations.h"

#include <cstdlib>
#include <mutex>

#include <unistd.h>

#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/settings.h"

namespace onesum::emulated {
namespace {

struct Found {
  std::mutex mutex;
  std::size_t count = 0;
  std::string last;
};

Found& found() {
  static Found& result = *new Found;
  return result;
}

}  // namespace

void report_violation(const std::string& text) {
  const std::string line = "emulated GPU: " + text + "\n";
  const std::lock_guard lock(found().mutex);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  if (settings().aborts_at_violation) std::abort();
  ++found().count;
  found().last = text;
}

std::size_t count_violations() {
  const std::lock_guard lock(found().mutex);
  return found().count;
}

std::string last_violation() {
  const std::lock_guard lock(found().mutex);
  return found().last;
}

void forget_violations() {
  const std::lock_guard lock(found().mutex);
  found().count = 0;
  found().last.clear();
}

}  // namespace onesum::emulated

extern "C" {

std::size_t emulated_gpu_violations() { return onesum::emulated::count_violations(); }

const char* emulated_gpu_last_violation() {
  thread_local std::string text;
  text = onesum::emulated::last_violation();
  return text.c_str();
}
}
