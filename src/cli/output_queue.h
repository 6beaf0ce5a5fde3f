// Whole lines on their way to a file, terminal or pipe whose reader may be slow: written when they can be,
// without ever waiting and without changing the file's flags, which others share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace onesum::cli {

class OutputQueue {
 public:
  explicit OutputQueue(int fd) noexcept;  // not closed

  // Only whole lines. Nothing happens once writing has failed.
  void append(std::string_view lines);

  // Writes as much as can be taken now.
  void write_some();

  int fd() const noexcept { return fd_; }
  bool is_empty() const noexcept { return text_.empty(); }
  bool is_full() const noexcept;  // time to let those wait who fill it
  // A line was begun and waits for its reader.
  bool is_inside_line() const noexcept { return written_ > 0 && text_[written_ - 1] != '\n'; }
  // Why writing failed, an errno; 0: it did not.
  int error() const noexcept { return error_; }

 private:
  bool is_ready() const noexcept;
  void drop_written();

  int fd_;
  std::size_t piece_bytes_;  // so many are taken at once where poll says that some are
  std::string text_;
  std::size_t written_ = 0;  // bytes at the front of text_
  int error_ = 0;
};

// Whether both are the same open file, terminal or pipe.
bool are_same_file(int one, int other) noexcept;

}  // namespace onesum::cli
