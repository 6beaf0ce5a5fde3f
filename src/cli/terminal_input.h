// The keyboard for worker 0. Workers are in the background of their terminal and may not read it, so that
// `onesum run`, which may, hands on what is typed. Input that is no terminal goes to worker 0 directly.
#pragma once

#include <string>
#include <vector>

#include <poll.h>

#include "base/fd.h"

namespace onesum::cli {

class TerminalInput {
 public:
  TerminalInput();  // idle if standard input is no terminal

  // What worker 0 reads; standard input itself if idle.
  int reading_end() const noexcept;
  void close_reading_end() noexcept { theirs_.reset(); }
  void close_writing_end() noexcept { ours_.reset(); }

  // Adds what is waited for. Returns after how many milliseconds to ask again, -1: not before something
  // happens.
  int add_to(std::vector<pollfd>& polled) const;
  // Reads or writes without waiting what can be.
  void serve();

 private:
  bool may_read() const noexcept;

  Fd theirs_, ours_;
  std::string typed_;  // and not yet taken
};

}  // namespace onesum::cli
