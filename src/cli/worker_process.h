// Starting a worker of `onesum run` (or `onesum bench`), and saying how it ended.
#pragma once

#include <csignal>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"

namespace onesum::cli {

// What all workers of a run have in common.
struct Launch {
  std::vector<std::string> program;  // and its arguments
  std::size_t workers = 1;
  std::string job;
  int first_stdin = 0;  // standard input of worker 0; the others read nothing
  // Worker 0 writes to this process's standard output and error by itself; what others write goes to standard
  // error.
  bool first_speaks = false;
  sigset_t signal_mask{};                    // of the workers
  std::vector<std::string> gpus_of_workers;  // by rank: CUDA_VISIBLE_DEVICES; empty: as it is
};

struct WorkerProcess {
  pid_t pid = -1;
  Fd out, err;  // what it writes, none if it writes by itself; reading never waits
  Fd report;    // its messages, base/worker_report.h; reading never waits
};

// The program cannot be run. The exit code is a shell's: 127 not found, 126 not runnable.
class CannotRun : public std::runtime_error {
 public:
  CannotRun(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// A process group of its own, led by the worker, which is killed when the calling thread ends. Throws
// CannotRun naming the program, Error where the system has no room for it.
WorkerProcess start_worker(const Launch& launch, std::size_t rank);

// Of a status as waitpid gives it: the exit code, or 128 and the signal's number.
int exit_code_of(int status) noexcept;
// "exit 3", "killed by SIGKILL".
std::string ending_text(int status);
// "SIGKILL"; "signal 40" for those without a name.
std::string signal_name(int signal);

// A name for a job that no other has.
std::string fresh_job_id();

}  // namespace onesum::cli
