// onesum bench: how long reductions take here, and how close that is to what the machine can do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/dtype.h>
#include <onesum/options.h>

#include "cli/bench_sampler.h"

namespace onesum::cli {

struct BenchOptions {
  std::size_t devices = 2;             // of this process, or of each worker
  std::optional<std::size_t> workers;  // embedded
  std::optional<AllReduceSpecs> spec;  // absent: the sum is formed on one device
  std::vector<std::size_t> sizes;      // bytes of one replica; empty: `shapes_file`
  std::optional<std::string> shapes_file;
  std::string case_name = "inproc";  // results are named after it
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Budget budget;
  bool huge_pages = false;
  bool json = false;
  bool bound = false;  // also as JSON lines; the table shows it always
};

// Throws Error, also where a result differs from the independent sum.
void run_bench(const BenchOptions& options);

}  // namespace onesum::cli
