// What `onesum run` says of its workers at the end.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/worker_report.h"

namespace onesum::cli {

struct WorkerEnding {
  int status = 0;                      // as waitpid gives it
  std::optional<WorkerReport> report;  // absent: it sent none
};

// A message of a worker (base/worker_report.h); nullopt for anything else.
std::optional<WorkerReport> parse_report(std::string_view message);

// Adds a later message of the same worker. Of two workers waited for the one that took longer counts.
void add_report(std::optional<WorkerReport>& to, const WorkerReport& report);

// A line for each worker that reported, and one for the worker that was waited for most; by rank.
//   onesum: worker 0: 12 calls, 48 MiB, waited 1.20 s, most for worker 3 (1.10 s)
//   onesum: worker 3 was waited for most: 3.30 s
std::string summary_text(std::span<const WorkerEnding> endings);

// A line for each worker:
//   {"worker":0,"exit_code":137,"signal":"SIGKILL","calls":12,"bytes":50331648,"waited_s":1.2,…}
std::string summary_json(std::span<const WorkerEnding> endings);

}  // namespace onesum::cli
