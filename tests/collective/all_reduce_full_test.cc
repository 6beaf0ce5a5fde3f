// Every algorithm and hierarchy on every layout: up to 64 workers of up to 8 devices.
#include <gtest/gtest.h>

#include "collective/proving.h"

namespace onesum::collective {
namespace {

Grid layouts_of(std::int32_t more_than, std::int32_t at_most) {
  return {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 64},
          {1, 2, 3, 4, 8},
          {1, 2, 3},
          more_than,
          at_most};
}

TEST(AllReduceFull, EverySchemeIsProvedOnUpTo64Devices) { expect_proved(layouts_of(0, 64)); }

TEST(AllReduceFull, EverySchemeIsProvedOnUpTo512Devices) { expect_proved(layouts_of(64, 512)); }

}  // namespace
}  // namespace onesum::collective
