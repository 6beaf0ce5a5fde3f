// onesum run: a program as several workers on this machine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace onesum::cli {

struct RunOptions {
  std::size_t workers = 1;
  std::vector<std::string> program;  // and its arguments; at least one
  bool prefix = true;                // each line of output begins with its worker's rank
  bool keep_going = false;           // a worker that fails does not end the rest
  double grace_seconds = 5;          // between SIGTERM and SIGKILL
  bool json = false;                 // output and endings as JSON, one object a line
  bool first_speaks = false;         // worker 0 writes to the tool's own output; nothing is said at the end
  std::vector<std::string> gpus_of_workers;  // by rank: CUDA_VISIBLE_DEVICES; empty: as it is
};

// Returns the exit code: 0 if all workers ended so, else that of the worker that failed first (128 and the
// signal's number for one that was killed), with keep_going the highest. Throws CannotRun
// (cli/worker_process.h) and Error. Calls fork: both processes return, or throw, and then have to end.
int run_workers(const RunOptions& options);

}  // namespace onesum::cli
