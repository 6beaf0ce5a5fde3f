// onesum bench: how long reductions take here, and how close that is to what the machine can do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/collective.h>
#include <onesum/dtype.h>
#include <onesum/options.h>

#include "cli/bench_sampler.h"

namespace onesum::cli {

struct BenchOptions {
  std::vector<std::string> arguments;    // of the tool, as they were typed: its workers get the same
  std::optional<std::size_t> devices;    // of this process, or of each worker
  std::optional<std::size_t> workers;    // processes to start, or as many as a launcher has started
  bool embedded = false;                 // the workers are embedded in this process instead
  std::string device_type = "CPU";       // or "GPU"
  std::optional<std::string> transport;  // between worker processes: "shm", …
  std::optional<AllReduceSpecs> spec;    // absent: sum on one device; between worker processes "auto"
  std::vector<std::size_t> sizes;        // bytes of one replica; empty: `shapes_file`
  std::optional<std::string> shapes_file;
  std::optional<std::string> case_name;  // results are named after it
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  CollectiveKind collective = CollectiveKind::kReduce;
  bool messages = false;  // from worker to worker, in place of a collective
  Budget budget;
  bool check = true;  // results are compared with an independent sum
  bool huge_pages = false;
  bool json = false;
  bool bound = false;                  // also as JSON lines; the table shows it always
  std::optional<std::string> plot;     // a drawing of all results
  std::optional<std::string> compare;  // JSON lines of other systems, for the drawing
  bool measure = true;                 // false: `plot` shows what `compare` holds, and nothing else is done
};

// Returns the exit code; throws UsageError, CannotRun and Error, also where a result differs from the
// independent sum. Where it starts workers it calls fork, and what cli/run_command.h says holds.
int run_bench(const BenchOptions& options);

}  // namespace onesum::cli
