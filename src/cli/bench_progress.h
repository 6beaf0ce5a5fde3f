// What the bench is doing, in one line that is drawn over and over. Only people see it: where standard error
// is no terminal, or this worker is not the one that prints, nothing is written.
#pragma once

#include <cstddef>
#include <string_view>

namespace onesum::cli {

class Progress {
 public:
  explicit Progress(bool may_print);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  void clear();  // before anything else is printed

 private:
  bool is_shown_;
  bool has_line_ = false;
};

}  // namespace onesum::cli
