#include <gtest/gtest.h>

#include "same_bits.h"

namespace onesum::testing {
namespace {

TEST(SameBitsOfProcessesFull, OverSharedMemory) {
  for (const int size : {4, 5, 8}) expect_same_bits_as_embedded(size, "shm");
}

TEST(SameBitsOfProcessesFull, OverTcp) {
  for (const int size : {4, 5, 8}) expect_same_bits_as_embedded(size, "tcp");
}

}  // namespace
}  // namespace onesum::testing
