#include "engine/router.h"

#include "engine/shm_meeting.h"
#include "engine/transport_conformance.h"
#include "engine/ucx_meeting.h"
#include "support/expect_error.h"

namespace onesum::engine::testing {
namespace {

bool share_a_machine(int a, int b) { return a / 2 == b / 2; }

// Machines of two ranks each, which are all this one.
class RouterMeeting final : public Meeting {
 public:
  RouterMeeting(int size, const Limits& limits)
      : size_(size),
        near_(size, limits),
        far_(loopback(size, limits), [](int a, int b) { return !share_a_machine(a, b); }) {}

  std::unique_ptr<Transport> join(int rank) override {
    std::vector<bool> is_near;
    for (int peer = 0; peer < size_; ++peer) is_near.push_back(share_a_machine(rank, peer));
    return std::make_unique<Router>(near_.join(rank), far_.join(rank), is_near);
  }

 private:
  int size_;
  ShmMeeting near_;
  UcxMeeting far_;
};

TransportUnderTest routed(RanksAre ranks_are) {
  return {ranks_are == RanksAre::kThreads ? "threads" : "processes", ranks_are,
          [ranks_are](int size, const Limits& limits) {
            if (ranks_are == RanksAre::kProcesses) require_no_ucx_before_fork();
            return std::make_unique<RouterMeeting>(size, limits);
          }};
}

INSTANTIATE_TEST_SUITE_P(Router, TransportConformance,
                         ::testing::Values(routed(RanksAre::kProcesses), routed(RanksAre::kThreads)),
                         [](const auto& tested) { return tested.param.name; });

TEST(Router, LimitsMustBeAlike) {
  const auto make = [] {
    Limits other = kSmallLimits;
    other.messages += 1;
    const Router router(ShmMeeting(1, kSmallLimits).join(0), ShmMeeting(1, other).join(0), {true});
  };
  onesum::testing::expect_error(make, ErrorCode::kInvalidArgument,
                                {"8192 bytes, 0 in common, 6 messages, 2 copies near",
                                 "8192 bytes, 0 in common, 7 messages, 2 copies far"});
}

}  // namespace
}  // namespace onesum::engine::testing
