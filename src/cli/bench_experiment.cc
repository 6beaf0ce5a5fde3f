#include "cli/bench_experiment.h"

#include <algorithm>

#include <malloc.h>

#include <onesum/error.h>

#include "cli/bench_collectives.h"
#include "cli/bench_gpus.h"
#include "cli/bench_memory.h"

namespace onesum::cli {
namespace {

// All workers must bring the same kind of numbers, and plans of workers that know other constants of their
// machines may differ.
Values values_for(const CrossDeviceOps& ops, const Workload& workload, Lockstep& lockstep) {
  if (workload.collective != CollectiveKind::kReduce) return Values::kAny;  // they add in that order alone
  const std::vector<Device> devices(workload.devices.begin(), workload.devices.end());
  std::vector<ReduceSpec> specs;
  for (const Shape& shape : workload.shapes) specs.push_back({workload.dtype, shape, devices, devices});
  const bool is_canonical = ops.plan(workload.op, specs).order() == "canonical";
  return lockstep.largest(is_canonical ? 0.0 : 1.0) == 0 ? Values::kAny : Values::kWhole;
}

// Collectives that have parts have equal ones: of the size that was asked for, or little more.
std::vector<Shape> with_equal_parts(const std::vector<Shape>& shapes, std::size_t parts) {
  std::vector<Shape> even;
  for (const Shape& shape : shapes) {
    even.push_back(Shape{static_cast<std::int64_t>((shape.elements() + parts - 1) / parts * parts)});
  }
  return even;
}

// Before anybody has taken any; if one worker finds too little, all give up.
void refuse_together(const Workload& workload, const Laboratory& laboratory) {
  std::string problem;
  try {
    workload.gpus == 0 ? refuse_too_large(workload, laboratory.stage.processes_here)
                       : refuse_too_large_for_gpus(workload);
  } catch (const Error& error) {
    problem = error.what();
  }
  const std::string first = laboratory.lockstep.first_text(problem);
  if (first.empty()) return;
  if (!laboratory.lockstep.is_first()) throw FirstTells();
  throw Error(ErrorCode::kResourceExhausted, first);
}

}  // namespace

Experiment::Experiment(const Laboratory& laboratory, const std::vector<Shape>& shapes)
    : laboratory_(laboratory), ops_(laboratory.stage.ops()) {
  make_workspace(shapes);
  const bool is_batch = laboratory.options.shapes_file.has_value();
  if (laboratory.options.messages || workload().collective != CollectiveKind::kReduce) {
    add_other_cases();
    return;
  }
  if (workload().can_be_in_place()) add_bound(bounds_[0], "ideal_in", BoundKind::kInPlace);
  add_bound(bounds_[1], is_batch ? "ideal_fresh" : "ideal_out", BoundKind::kOutOfPlace);
  is_batch ? add_batch_cases() : add_size_cases();
}

void Experiment::make_workspace(const std::vector<Shape>& shapes) {
  const bool is_reduce = laboratory_.options.collective == CollectiveKind::kReduce;
  const Workload workload{
      .collective = laboratory_.options.collective,
      .op = laboratory_.options.op,
      .dtype = laboratory_.options.dtype,
      .shapes = is_reduce ? shapes : with_equal_parts(shapes, laboratory_.stage.devices().size()),
      .devices = laboratory_.stage.devices(),
      .processes = laboratory_.stage.processes,
      .rank = laboratory_.stage.rank,
      .huge_pages = laboratory_.options.huge_pages,
      .gpus = laboratory_.stage.is_on_gpus() ? laboratory_.stage.devices_each : 0};
  refuse_together(workload, laboratory_);
  const Values values = values_for(*ops_, workload, laboratory_.lockstep);
  malloc_trim(0);  // what the experiment before has freed is not counted as anybody's
  const std::size_t before = resident_memory().value_or(0);
  pattern_.emplace(workload.op, workload.dtype, workload.replicas(), values);
  workspace_.emplace(workload);
  own_bytes_ = std::max(resident_memory().value_or(0), before) - before;
}

void Experiment::add_bound(NamedBound& to, const char* name, BoundKind kind) {
  to.name = name;
  if (!laboratory_.has_bounds()) return;
  to.bound.emplace(*workspace_, kind, laboratory_.threads, laboratory_.meeting);
  if (to.bound->is_empty()) to.bound.reset();
}

void Experiment::add_size_cases() {
  if (workload().can_be_in_place()) {
    add("_in", into_case(*ops_, *workspace_, Place::kIn, Call::kPrepared), bounds_[0]);
    add("_in_plain", into_case(*ops_, *workspace_, Place::kIn, Call::kPlain), bounds_[0]);
  }
  add("_out", into_case(*ops_, *workspace_, Place::kOut, Call::kPrepared), bounds_[1]);
  add("_out_plain", into_case(*ops_, *workspace_, Place::kOut, Call::kPlain), bounds_[1]);
}

// Nothing to compare them with is measured.
void Experiment::add_other_cases() {
  if (laboratory_.options.messages) {
    add("_out_plain", message_case(*laboratory_.stage.cluster, *workspace_), bounds_[1]);
    return;
  }
  if (workload().collective != CollectiveKind::kAllToAll) {
    add("_in", collective_case(*ops_, *workspace_, Place::kIn, Call::kPrepared), bounds_[0]);
    add("_in_plain", collective_case(*ops_, *workspace_, Place::kIn, Call::kPlain), bounds_[0]);
  }
  add("_out", collective_case(*ops_, *workspace_, Place::kOut, Call::kPrepared), bounds_[1]);
  add("_out_plain", collective_case(*ops_, *workspace_, Place::kOut, Call::kPlain), bounds_[1]);
}

void Experiment::add_batch_cases() {
  if (workload().can_be_in_place()) {
    add("_batch", into_case(*ops_, *workspace_, Place::kIn, Call::kPlain), bounds_[0]);
    add("_prepared", into_case(*ops_, *workspace_, Place::kIn, Call::kPrepared), bounds_[0]);
  }
  add("_fresh", fresh_case(*ops_, *workspace_), bounds_[1]);
}

void Experiment::add(const char* ending, std::unique_ptr<Case> call, const NamedBound& bound) {
  MeasuredCase one;
  one.name = laboratory_.stage.case_name + ending;
  one.call = std::move(call);
  one.bound = &bound;
  cases_.push_back(std::move(one));
}

// What this process held at most beyond the bench's own, and what it had before the library came. Of GPUs'
// memory the system knows nothing.
std::optional<std::size_t> Experiment::peak_extra() const {
  if (laboratory_.stage.is_on_gpus()) return std::nullopt;
  const auto peak = peak_memory();
  if (!peak || !laboratory_.resident_at_start) return std::nullopt;
  const std::size_t others = *laboratory_.resident_at_start + own_bytes_;
  return *peak > others ? *peak - others : 0;
}

void Experiment::check() {
  std::vector<Difference> differences;
  std::vector<double> extras;
  for (MeasuredCase& one : cases_) {
    const bool is_watched = reset_peak_memory();
    if (laboratory_.options.check) {
      differences.push_back(one.call->difference(*pattern_));
    } else {
      one.call->call(1);
    }
    const auto extra = is_watched ? peak_extra() : std::nullopt;
    extras.push_back(extra ? static_cast<double>(*extra) : -1);
  }
  const std::vector<double> most = laboratory_.lockstep.largest(extras);
  for (std::size_t c = 0; c < cases_.size(); ++c) {
    // The first time: later the library keeps what cases that come after have needed.
    if (!cases_[c].extra_bytes && most[c] >= 0) cases_[c].extra_bytes = static_cast<std::size_t>(most[c]);
  }
  if (laboratory_.options.check) add_differences(differences);
}

void Experiment::add_differences(const std::vector<Difference>& own) {
  std::vector<double> counts;
  for (const Difference& one : own) counts.push_back(static_cast<double>(one.elements));
  const auto by_rank = laboratory_.lockstep.gather(counts);
  for (std::size_t c = 0; c < cases_.size(); ++c) {
    std::size_t wrong = 0;
    for (const std::vector<double>& counts_there : by_rank)
      wrong += static_cast<std::size_t>(counts_there[c]);
    if (wrong == 0) continue;
    const std::string first = laboratory_.lockstep.first_text(own[c].first);
    if (cases_[c].wrong == 0) cases_[c].first_wrong = first;
    cases_[c].wrong += wrong;
  }
}

void Experiment::measure(const std::function<void(std::size_t)>& progress) {
  const Budget& budget = laboratory_.options.budget;
  for (std::size_t round = 0; round < budget.rounds; ++round) {
    progress(round);
    for (NamedBound& one : bounds_) {
      if (one.bound) one.bound->measure_round(budget, laboratory_.lockstep);
    }
    for (MeasuredCase& one : cases_) measure_round(*one.call, budget, one.times, laboratory_.lockstep);
  }
}

}  // namespace onesum::cli
