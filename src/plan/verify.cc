#include "plan/verify.h"

#include <fmt/format.h>

#include "plan/expressions.h"
#include "plan/locations.h"
#include "plan/progress.h"
#include "plan/races.h"
#include "plan/refuse.h"
#include "plan/results.h"
#include "plan/rules.h"
#include "plan/symbolic.h"
#include "plan/well_formed.h"

namespace onesum::plan {

namespace {

// Bounds the memory of the proof, which takes a few words per chunk and per lane.
constexpr std::size_t kMaxLanes = std::size_t{1} << 20;
constexpr std::size_t kMaxLocations = std::size_t{1} << 26;

}  // namespace

Proof verify(const Plan& plan) {
  check_well_formed(plan);
  const Locations locations(plan);
  if (plan.lanes.size() > kMaxLanes || locations.size() > kMaxLocations) {
    refuse(fmt::format("{} lanes and {} chunks in all buffers, at most {} and {} can be verified",
                       plan.lanes.size(), locations.size(), kMaxLanes, kMaxLocations));
  }
  check_rules(plan);
  const Schedule schedule = run_to_end(plan);
  check_races(plan, schedule);
  Expressions expressions;
  const std::vector<Content> contents = execute(plan, schedule, locations, expressions);
  return check_results(plan, locations, contents, expressions);
}

}  // namespace onesum::plan
