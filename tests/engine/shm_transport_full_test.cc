// Long runs over shared memory: what a race of a few nanoseconds would need to show itself.
#include <gtest/gtest.h>

#include "engine/shm_meeting.h"
#include "engine/transport_conformance.h"

namespace onesum::engine::testing {
namespace {

TEST(ShmTransportLong, NoWakeUpIsLost) {
  for (const RanksAre ranks_are : {RanksAre::kThreads, RanksAre::kProcesses}) {
    for (const unsigned phases : {1U, 2U}) {
      const Limits limits{.bytes = 512, .messages = 1, .phases = phases};
      ASSERT_EQ(run_ranks(over_shm(ranks_are), 2, limits, always_asleep(100000)), "") << phases << " phases";
    }
  }
}

TEST(ShmTransportLong, EveryByteArrives) {
  for (const int size : {2, 3, 5, 8}) {
    for (const Waiting how : {Waiting::kSpin, Waiting::kSleep, Waiting::kEither})
      ASSERT_EQ(run_ranks(over_shm(RanksAre::kProcesses), size, kSmallLimits, all_to_all(5000, how)), "")
          << size;
  }
}

}  // namespace
}  // namespace onesum::engine::testing
