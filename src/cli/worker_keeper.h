// The keeper: the process between `onesum run` and its workers. It starts them, prints what they write,
// passes signals on, ends the rest when one fails, and leaves no process behind, also when `onesum run` is
// killed.
//
//   onesum run ── keeper ──┬── worker 0 ── …
//                          └── worker 1 ── …
//
// The keeper and each worker have process groups of their own, so that what a terminal or a shell sends to a
// group reaches `onesum run` alone, which passes it on, once. Orphans become the keeper's children. Should
// the keeper be killed, the kernel kills the workers, and `onesum run` what they leave.
#pragma once

#include "base/fd.h"
#include "cli/worker_lines.h"
#include "cli/worker_process.h"

namespace onesum::cli {

struct KeepOptions {
  Launch launch;
  LineStyle style = LineStyle::kPrefixed;
  double grace_seconds = 5;  // between SIGTERM and SIGKILL
  bool keep_going = false;   // a worker that fails does not end the rest
  sigset_t signals{};        // blocked ones, which are passed on
};

// Runs the workers to their end. `lifeline` is a pipe whose other end closes when `onesum run` is gone.
// Returns the exit code: that of the worker that failed first, with keep_going the highest. Throws CannotRun
// and Error when no worker was started, or all were ended again.
int keep_workers(KeepOptions options, Fd lifeline);

}  // namespace onesum::cli
