#include "cli/run_signals.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/signalfd.h>
#include <unistd.h>

#include <onesum/error.h>

namespace onesum::cli {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalMasks block_signals() {
  struct sigaction ends_only{};  // a child that stops is no news, and none ends unseen
  ends_only.sa_handler = SIG_DFL;
  ends_only.sa_flags = SA_NOCLDSTOP;
  sigaction(SIGCHLD, &ends_only, nullptr);
  SignalMasks masks;
  sigemptyset(&masks.blocked);
  sigaddset(&masks.blocked, SIGCHLD);
  for (const int signal : kPassedOn) {
    if (!is_ignored(signal)) sigaddset(&masks.blocked, signal);
  }
  sigset_t all = masks.blocked;
  sigaddset(&all, SIGTTOU);  // a terminal that stops writers from the background must not stop the keeper
  sigprocmask(SIG_BLOCK, &all, &masks.before);
  return masks;
}

SignalReader::SignalReader(const sigset_t& signals)
    : fd_(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)) {
  if (!fd_.is_open()) {
    throw Error(ErrorCode::kResourceExhausted, std::string("cannot read signals: ") + std::strerror(errno));
  }
}

std::optional<ReceivedSignal> SignalReader::next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return ReceivedSignal{static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid)};
}

}  // namespace onesum::cli
