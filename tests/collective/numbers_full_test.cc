// One and the same result on every layout and for every scheme without a ring: the whole grid.
#include <gtest/gtest.h>

#include "collective/numbers.h"
#include "collective/sums.h"

namespace onesum::collective {
namespace {

TEST(AllReduceNumbersFull, AreTheSameOnEveryLayoutAndForEveryScheme) {
  for (const std::int32_t replicas : {6, 8, 12, 15, 16}) {
    expect_one_result(replicas, types_with_sums(), 0, 1);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace onesum::collective
