#include "plan/cost.h"

#include "plan/timeline.h"

namespace onesum::plan {

namespace {

// A stored lane, in one stretch.
class StoredLane final : public LaneStream {
 public:
  StoredLane(const Plan& plan, const Lane& lane) : plan_(&plan), lane_(&lane) {}

  bool next(Stretch& stretch) override {
    if (lane_ == nullptr) return false;
    stretch = {plan_, lane_->steps};
    lane_ = nullptr;
    return true;
  }

 private:
  const Plan* plan_;
  const Lane* lane_;  // null: given out
};

}  // namespace

Cost cost(const Plan& plan, const Sizes& sizes, const CostConstants& constants) {
  std::vector<StoredLane> streams;
  streams.reserve(plan.lanes.size());
  std::vector<TimelineLane> lanes;
  for (const Lane& lane : plan.lanes) {
    streams.emplace_back(plan, lane);
    lanes.push_back({lane.rank, &streams.back(), 0, false});
  }
  for (const Lane& lane : plan.lanes) {
    for (const Step& step : lane.steps) {
      if (step.op == Op::kWait) lanes[static_cast<std::size_t>(step.lane)].is_awaited = true;
    }
  }
  Cost cost = timeline(lanes, sizes, constants);
  cost.devices.resize(plan.device_rank.size());
  return cost;
}

}  // namespace onesum::plan
