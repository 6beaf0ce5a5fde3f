#include "cli/bench_command.h"

#include <memory>

#include <onesum/all_reduce.h>
#include <onesum/error.h>

#include "base/text.h"
#include "cli/bench_bound.h"
#include "cli/bench_cases.h"
#include "cli/bench_report.h"
#include "cli/machine.h"
#include "cli/quantities.h"
#include "cli/shapes_file.h"
#include "cli/usage.h"
#include "cli/worker_names.h"

namespace onesum::cli {
namespace {

struct NamedBound {
  std::string name;
  std::optional<FastestBound> bound;  // absent: there is nothing to compare with

  const Series* times() const { return bound ? &bound->times() : nullptr; }
};

struct MeasuredCase {
  std::string name;
  std::unique_ptr<Case> call;
  const NamedBound* bound = nullptr;
  Series times;
};

Values values_for(const CrossDeviceOps& ops, const Workload& workload) {
  std::vector<Device> devices;
  for (std::size_t d = 0; d < workload.devices; ++d) devices.emplace_back(workload.device_name(d));
  std::vector<ReduceSpec> specs;
  for (const Shape& shape : workload.shapes) specs.push_back({workload.dtype, shape, devices, devices});
  return ops.plan(workload.op, specs).order() == "canonical" ? Values::kAny : Values::kWhole;
}

// One workload: its memory, the ways to reduce it and their bounds.
struct Experiment {
  Experiment(const BenchOptions& options, Workload workload)
      : owned_ops(make_ops(options.spec, options.workers, options.devices)),
        ops(*owned_ops),
        pattern(workload.op, workload.dtype, workload.devices, values_for(ops, workload)),
        workspace(std::move(workload)) {
    const auto add_bound = [&](NamedBound& to, const char* name, BoundKind kind) {
      to.name = name;
      if (options.json && !options.bound) return;
      to.bound.emplace(workspace, kind, library_threads());
      if (to.bound->is_empty()) to.bound.reset();
    };
    const bool is_batch = options.shapes_file.has_value();
    if (workspace.workload().can_be_in_place()) add_bound(bounds[0], "ideal_in", BoundKind::kInPlace);
    add_bound(bounds[1], is_batch ? "ideal_fresh" : "ideal_out", BoundKind::kOutOfPlace);
    is_batch ? add_batch_cases(options.case_name) : add_size_cases(options.case_name);
  }

  void add_size_cases(const std::string& name) {
    if (workspace.workload().can_be_in_place()) {
      add(name + "_in", into_case(ops, workspace, Place::kIn, Call::kPrepared), bounds[0]);
      add(name + "_in_plain", into_case(ops, workspace, Place::kIn, Call::kPlain), bounds[0]);
    }
    add(name + "_out", into_case(ops, workspace, Place::kOut, Call::kPrepared), bounds[1]);
    add(name + "_out_plain", into_case(ops, workspace, Place::kOut, Call::kPlain), bounds[1]);
  }

  void add_batch_cases(const std::string& name) {
    if (workspace.workload().can_be_in_place()) {
      add(name + "_batch", into_case(ops, workspace, Place::kIn, Call::kPlain), bounds[0]);
      add(name + "_prepared", into_case(ops, workspace, Place::kIn, Call::kPrepared), bounds[0]);
    }
    add(name + "_fresh", fresh_case(ops, workspace), bounds[1]);
  }

  void add(std::string name, std::unique_ptr<Case> call, const NamedBound& bound) {
    cases.push_back({std::move(name), std::move(call), &bound, {}});
  }

  std::unique_ptr<CrossDeviceOps> owned_ops;
  CrossDeviceOps& ops;
  Pattern pattern;
  Workspace workspace;
  NamedBound bounds[2];
  std::vector<MeasuredCase> cases;
};

void check(Experiment& experiment) {
  const Workload& workload = experiment.workspace.workload();
  for (const MeasuredCase& one : experiment.cases) {
    if (const auto difference = one.call->difference(experiment.pattern)) {
      throw Error(ErrorCode::kInternal, "wrong result: case " + one.name + ", " +
                                            std::to_string(workload.devices) + " devices, " +
                                            std::to_string(workload.bytes()) + " bytes, " + *difference);
    }
  }
}

void measure(Experiment& experiment, const Budget& budget) {
  for (std::size_t round = 0; round < budget.rounds; ++round) {
    for (NamedBound& one : experiment.bounds) {
      if (one.bound) one.bound->measure_round(budget);
    }
    for (MeasuredCase& one : experiment.cases) measure_round(*one.call, budget, one.times);
  }
}

void report_on(const Experiment& experiment, BenchReport& report) {
  const Workload& workload = experiment.workspace.workload();
  for (const MeasuredCase& one : experiment.cases) {
    report.add(workload, {one.name, &one.times, one.bound->times()});
  }
  for (const NamedBound& one : experiment.bounds) {
    if (one.bound) report.add_bound(workload, one.name, *one.times());
  }
}

std::vector<std::vector<Shape>> workload_shapes(const BenchOptions& options) {
  std::vector<std::vector<Shape>> workloads;
  for (const std::size_t bytes : options.sizes) {
    const auto elements = static_cast<std::int64_t>(elements_in("--sizes", bytes, options.dtype));
    workloads.push_back({Shape{elements}});
  }
  if (options.shapes_file) {
    workloads.emplace_back();
    for (const NamedShape& named : read_shapes(*options.shapes_file)) workloads.back().push_back(named.shape);
  }
  return workloads;
}

}  // namespace

void run_bench(const BenchOptions& options) {
  static_cast<void>(result_dtype(options.op, options.dtype));  // refuses types without a sum
  const auto workloads = workload_shapes(options);
  BenchReport report(options);
  report.begin(library_threads());
  for (const std::vector<Shape>& shapes : workloads) {
    Experiment experiment(options, {.op = options.op,
                                    .dtype = options.dtype,
                                    .shapes = shapes,
                                    .devices = options.workers.value_or(1) * options.devices,
                                    .workers = options.workers.value_or(options.spec ? 1 : 0),
                                    .huge_pages = options.huge_pages});
    check(experiment);
    measure(experiment, options.budget);
    check(experiment);  // once more: many calls later the results are still right
    report_on(experiment, report);
  }
}

}  // namespace onesum::cli
