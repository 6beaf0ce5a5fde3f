// Every algorithm and hierarchy on the layouts of more than 64 devices, up to 64 workers of 8.
#include <gtest/gtest.h>

#include "collective/proving.h"

namespace onesum::collective {
namespace {

TEST(AllReduceExhaustive, EverySchemeIsProvedOnUpTo512Devices) {
  expect_proved(Grid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 64},
                     {1, 2, 3, 4, 8},
                     {1, 2, 3},
                     64,
                     512});
}

}  // namespace
}  // namespace onesum::collective
