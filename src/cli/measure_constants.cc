#include "cli/measure_constants.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "cli/bench_cases.h"
#include "cli/worker_names.h"
#include "plan/cost.h"

namespace onesum::cli {
namespace {

constexpr std::size_t kLarge = std::size_t{16} << 20;  // elements: beyond the caches of most machines
constexpr std::size_t kManySteps = 64;
constexpr Budget kBudget{0.3, 3};

struct Timed {
  double seconds = 0;  // median of a prepared call in place
  plan::Plan plan;
  plan::Sizes sizes;
};

// One replica on each of `workers`, or on two devices of this process if there are none.
Timed time_of(std::optional<std::size_t> workers, std::size_t tensors, std::size_t elements) {
  Workload workload;
  workload.shapes.assign(tensors, Shape{static_cast<std::int64_t>(elements)});
  const std::size_t each = 2 / workers.value_or(1);
  workload.devices =
      workers ? device_names(worker_names(*workers), "CPU", each) : own_device_names("CPU", each);
  Workspace workspace(workload);
  Lockstep alone;
  const auto spec = workers ? std::optional<AllReduceSpecs>("direct") : std::nullopt;
  const std::unique_ptr<CrossDeviceOps> ops = make_ops({spec, workers, each});
  const std::unique_ptr<Case> call = into_case(*ops, workspace, Place::kIn, Call::kPrepared);
  Series series;
  for (std::size_t round = 0; round < kBudget.rounds; ++round) {
    measure_round(*call, kBudget, series, alone);
  }

  const std::vector<Device> devices(workload.devices.begin(), workload.devices.end());
  std::vector<ReduceSpec> specs;
  for (const Shape& shape : workload.shapes) specs.push_back({workload.dtype, shape, devices, devices});
  const Plan plan = ops->plan(workload.op, specs, true);
  return {series.median(), plan.value(), {plan.pack_elements(), {}}};
}

// The value from 0 to `most` of the constant that `set` sets with which the time is predicted; 0 if it would
// be longer even so.
double fitted(const Timed& timed, plan::CostConstants constants, double most,
              const std::function<void(plan::CostConstants&, double)>& set) {
  double least = 0;
  for (int halvings = 0; halvings < 60; ++halvings) {
    const double middle = (least + most) / 2;
    set(constants, middle);
    (plan::cost(timed.plan, timed.sizes, constants).seconds > timed.seconds ? most : least) = middle;
  }
  return least;
}

}  // namespace

plan::CostConstants measure_constants() {
  plan::CostConstants constants;
  // Each replica is read once and written once.
  const Timed traffic = time_of(std::nullopt, 1, kLarge);
  constants.gamma = traffic.seconds / static_cast<double>(4 * kLarge * sizeof(float));
  const Timed one_step = time_of(1, 1, 1);
  const Timed many_steps = time_of(1, kManySteps, 1);
  constants.step = std::max(0.0, many_steps.seconds - one_step.seconds) / (kManySteps - 1);
  constants.across.seconds_per_byte = 0;
  constants.across.latency = fitted(time_of(2, 1, 1), constants, 1,
                                    [](plan::CostConstants& c, double value) { c.across.latency = value; });
  constants.across.seconds_per_byte =
      fitted(time_of(2, 1, kLarge), constants, 1e-3,
             [](plan::CostConstants& c, double value) { c.across.seconds_per_byte = value; });
  constants.inside = constants.across;  // both are memory of this process
  return constants;
}

}  // namespace onesum::cli
