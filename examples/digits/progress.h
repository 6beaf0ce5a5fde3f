// Shows how far the training is: a line per epoch, and on a terminal a bar below it.
#pragma once

#include <cstdio>
#include <string>

#include <unistd.h>

namespace digits {

class Progress {
 public:
  Progress(int epochs, bool is_shown)
      : epochs_(epochs), is_shown_(is_shown), is_terminal_(is_shown && isatty(STDOUT_FILENO) != 0) {}

  void step(int epoch, double share_of_epoch) const {
    if (!is_terminal_) return;
    constexpr int kWidth = 40;
    const double share = (epoch - 1 + share_of_epoch) / epochs_;
    const int full = static_cast<int>(share * kWidth);
    std::printf("\r[%s%s] %3.0f %%", std::string(full, '#').c_str(), std::string(kWidth - full, '.').c_str(),
                100 * share);
    std::fflush(stdout);
  }

  void epoch(int epoch, double loss, double accuracy) const {
    if (!is_shown_) return;
    constexpr const char* kEraseLine = "\r\x1b[K";
    std::printf("%sepoch %3d/%d   loss %.4f   held-out accuracy %5.1f %%\n", is_terminal_ ? kEraseLine : "",
                epoch, epochs_, loss, 100 * accuracy);
    std::fflush(stdout);
  }

  void end() const {
    if (is_terminal_) std::printf("\r\x1b[K");
  }

 private:
  int epochs_;
  bool is_shown_;
  bool is_terminal_;
};

}  // namespace digits
