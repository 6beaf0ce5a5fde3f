// One workload: its memory, the ways to reduce it, and what they can be compared with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_bound.h"
#include "cli/bench_cases.h"
#include "cli/bench_stage.h"

namespace onesum::cli {

// What all experiments of a bench share.
struct Laboratory {
  const BenchOptions& options;
  const Stage& stage;
  Lockstep& lockstep;
  Meeting* meeting = nullptr;                    // null: bounds are those of one process, or there are none
  std::size_t threads = 1;                       // of the library, in each process
  std::optional<std::size_t> resident_at_start;  // bytes, before the library had any

  bool has_bounds() const {
    return (!options.json || options.bound) && !stage.is_on_gpus() &&
           (stage.processes == 1 || meeting != nullptr);
  }
};

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
  std::size_t wrong = 0;                   // elements of all workers, in all checks
  std::string first_wrong;                 // which one, where, and what it is
  std::optional<std::size_t> extra_bytes;  // of the worker that needed most; absent: unknown
};

// All workers make the same experiments and call the same functions.
class Experiment {
 public:
  Experiment(const Laboratory& laboratory, const std::vector<Shape>& shapes);

  // One call of each case, whose results are compared if the options say so.
  void check();
  // All rounds; `progress` is told how many are done.
  void measure(const std::function<void(std::size_t)>& progress);

  const Workload& workload() const { return workspace_->workload(); }
  const std::vector<MeasuredCase>& cases() const { return cases_; }
  const NamedBound* bounds() const { return bounds_; }
  static constexpr std::size_t kBounds = 2;

 private:
  void make_workspace(const std::vector<Shape>& shapes);
  void add_bound(NamedBound& to, const char* name, BoundKind kind);
  void add_size_cases();
  void add_batch_cases();
  void add_other_cases();
  void add(const char* ending, std::unique_ptr<Case> call, const NamedBound& bound);
  std::optional<std::size_t> peak_extra() const;
  void add_differences(const std::vector<Difference>& own);

  const Laboratory& laboratory_;
  std::unique_ptr<CrossDeviceOps> ops_;
  std::optional<Pattern> pattern_;
  std::optional<Workspace> workspace_;
  std::size_t own_bytes_ = 0;  // of the pattern and the workspace
  NamedBound bounds_[kBounds];
  std::vector<MeasuredCase> cases_;
};

}  // namespace onesum::cli
