// What the bench prints: JSON lines or a table.
#pragma once

#include <cstddef>
#include <string>

#include "cli/bench_command.h"
#include "cli/bench_sampler.h"
#include "cli/bench_workspace.h"

namespace onesum::cli {

// The times of one case, and of its bound if there is one.
struct Result {
  std::string name;
  const Series* times = nullptr;
  const Series* bound = nullptr;
};

class BenchReport {
 public:
  explicit BenchReport(const BenchOptions& options) : options_(options) {}

  void begin(std::size_t threads);
  void add(const Workload& workload, const Result& result);
  void add_bound(const Workload& workload, const std::string& name, const Series& times);

 private:
  void print_json(const char* peer, const std::string& name, const Workload& workload, const Series& times);

  const BenchOptions& options_;
};

}  // namespace onesum::cli
