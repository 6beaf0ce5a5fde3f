// onesum plan: what a reduction would do, or what a plan in a file says, proved and drawn.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <onesum/all_reduce_spec.h>
#include <onesum/collective.h>
#include <onesum/dtype.h>
#include <onesum/options.h>

#include "api/study.h"
#include "cli/link_options.h"

namespace onesum::cli {

struct PlanOptions {
  std::optional<std::string> file;         // of a plan as text; absent: the plan of a call, as follows
  std::optional<AllReduceSpecs> spec;      // absent: the sum is formed on one device
  std::optional<std::size_t> workers;      // embedded; absent: this process alone
  std::optional<std::size_t> machines;     // among which they are divided; absent: they are on one
  std::size_t devices = 2;                 // of each worker
  std::string device_type = "CPU";         // or "GPU"; plans need no engine
  std::optional<std::size_t> bytes;        // of one replica of one tensor
  std::optional<std::string> shapes_file;  // or many tensors
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  CollectiveKind collective = CollectiveKind::kReduce;
  bool in_place = false;
  std::optional<std::string> to;         // device of the result; absent: every device
  std::optional<std::string> reduce_to;  // device that forms the sum; absent: the first one of the result
  int num_packs = 0;
  Numerics numerics = Numerics::kCanonical;
  std::optional<api::Half> half;
  LinkOptions links;

  bool simulate = false;  // no plan, only what it would cost
  bool explain = false;   // in words
  bool text = false;      // the plan itself beside the words
  bool verify = false;
  std::optional<std::string> draw;  // file for the drawing
  bool json = false;
};

// Throws Error, also where the plan is wrong.
void run_plan(const PlanOptions& options);

}  // namespace onesum::cli
