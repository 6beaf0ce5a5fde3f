// Every algorithm and hierarchy on every layout of up to 64 devices.
#include <gtest/gtest.h>

#include "collective/proving.h"

namespace onesum::collective {
namespace {

TEST(AllReduceFull, EverySchemeIsProvedOnUpTo64Devices) {
  expect_proved(Grid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 64},
                     {1, 2, 3, 4, 8},
                     {1, 2, 3},
                     0,
                     64});
}

}  // namespace
}  // namespace onesum::collective
