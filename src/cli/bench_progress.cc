#include "cli/bench_progress.h"

#include <cstdio>
#include <string>

#include <unistd.h>

namespace onesum::cli {
namespace {

constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

Progress::Progress(bool may_print) : is_shown_(may_print && isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::string_view text) {
  if (!is_shown_) return;
  std::fputs((kEraseLine + std::string(text)).c_str(), stderr);
  has_line_ = true;
}

void Progress::clear() {
  if (!has_line_) return;
  std::fputs(kEraseLine, stderr);
  has_line_ = false;
}

}  // namespace onesum::cli
