// A few ways to die, for the sanitizers; deaths_full_test.cc has more.
#include "deaths.h"

#include <gtest/gtest.h>

namespace onesum::testing {
namespace {

TEST(DeathAtAnOperation, IsSurvived) {
  DeathWatch watch;
  EXPECT_TRUE(watch.see({"shm", "direct", "die", 0, 0, 0}));
  EXPECT_TRUE(watch.see({"shm", "xring", "exit", 3, 1, 4}));
  EXPECT_TRUE(watch.see({"shm", "nccl/rechd", "stop", 1, 1, 2}));
  EXPECT_TRUE(watch.see({"tcp", "pscpu/pscpu#2", "die", 0, 1, 3}));
  EXPECT_TRUE(watch.see({"tcp", "rechd", "die", 0, 2, 5, 2}));
  EXPECT_FALSE(watch.see({"shm", "direct", "die", 0, 0, 1000}));
}

}  // namespace
}  // namespace onesum::testing
