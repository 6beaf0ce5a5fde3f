#include "cli/run_command.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/config.h"
#include "cli/process_tree.h"
#include "cli/run_signals.h"
#include "cli/terminal_input.h"
#include "cli/worker_keeper.h"

namespace onesum::cli {
namespace {

std::pair<Fd, Fd> make_lifeline() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kResourceExhausted, std::string("no pipe: ") + std::strerror(errno));
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

KeepOptions keep_options(const RunOptions& options, const SignalMasks& masks, int first_stdin) {
  KeepOptions keep;
  keep.launch = {options.program,      options.workers, fresh_job_id(),         first_stdin,
                 options.first_speaks, masks.before,    options.gpus_of_workers};
  // Workers are in the background of their terminal, which may stop those that write to it.
  if (options.first_speaks) sigaddset(&keep.launch.signal_mask, SIGTTOU);
  keep.style = options.json ? LineStyle::kJson : options.prefix ? LineStyle::kPrefixed : LineStyle::kPlain;
  keep.grace_seconds = options.grace_seconds;
  keep.keep_going = options.keep_going;
  keep.signals = masks.blocked;
  return keep;
}

// The process that the user has started: it passes on to the keeper what it is sent and what is typed.
class Front {
 public:
  Front(pid_t keeper, const SignalMasks& masks, TerminalInput terminal)
      : keeper_(keeper), signals_(masks.blocked), terminal_(std::move(terminal)) {}

  int run() {
    while (!status_) {
      std::vector<pollfd> polled = {{signals_.fd(), POLLIN, 0}};
      const int milliseconds = terminal_.add_to(polled);
      poll(polled.data(), polled.size(), milliseconds);
      take_signals();
      terminal_.serve();
    }
    return exit_code();
  }

 private:
  void take_signals() {
    while (const auto signal = signals_.next()) {
      if (signal->number == SIGCHLD) {
        int status = 0;
        if (waitpid(keeper_, &status, WNOHANG) == keeper_) status_ = status;
      } else {
        kill(keeper_, signal->number);
        if (signal->number == SIGTSTP) stop();
      }
    }
  }

  // As if the signal had not been blocked. Returns when the process is continued.
  static void stop() {
    sigset_t stopping{};
    sigemptyset(&stopping);
    sigaddset(&stopping, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stopping, nullptr);
    sigprocmask(SIG_BLOCK, &stopping, nullptr);
  }

  int exit_code() const {
    if (!WIFSIGNALED(*status_)) return exit_code_of(*status_);
    kill_descendants([](pid_t, int) {});
    throw Error(ErrorCode::kAborted,
                fmt::format("the process that kept the workers (pid {}) was {}; all it had started was ended",
                            keeper_, ending_text(*status_)));
  }

  pid_t keeper_;
  SignalReader signals_;
  TerminalInput terminal_;
  std::optional<int> status_;  // of the keeper's end
};

}  // namespace

int run_workers(const RunOptions& options) {
  process_config();  // a mistake in the environment is told once, and not by each worker
  adopt_orphans();
  const SignalMasks masks = block_signals();
  TerminalInput terminal;
  auto [lifeline, ours] = make_lifeline();
  KeepOptions keep = keep_options(options, masks, terminal.reading_end());
  const pid_t pid = fork();
  if (pid < 0) {
    throw Error(ErrorCode::kResourceExhausted,
                std::string("cannot start a process: ") + std::strerror(errno));
  }
  if (pid == 0) {
    setpgid(0, 0);
    ours.reset();
    terminal.close_writing_end();
    return keep_workers(std::move(keep), std::move(lifeline));
  }
  setpgid(pid, pid);
  terminal.close_reading_end();
  lifeline.reset();
  return Front(pid, masks, std::move(terminal)).run();
}

}  // namespace onesum::cli
