// The signals of `onesum run`: blocked, so that they are read from a descriptor, and passed on.
#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace onesum::cli {

struct SignalMasks {
  sigset_t before{};   // what was blocked when the tool was started
  sigset_t blocked{};  // SIGCHLD and the signals that are passed on
};

// Blocks SIGCHLD and what is passed on: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and
// SIGCONT, less those that the tool's caller has it ignore (nohup).
SignalMasks block_signals();

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;  // of SIGCHLD: the child, of several the first
};

// Where blocked signals of this process are read.
class SignalReader {
 public:
  explicit SignalReader(const sigset_t& signals);
  int fd() const noexcept { return fd_.get(); }
  std::optional<ReceivedSignal> next();  // nothing if none is pending

 private:
  Fd fd_;
};

}  // namespace onesum::cli
