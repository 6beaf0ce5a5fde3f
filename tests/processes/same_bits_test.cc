#include "same_bits.h"

#include <gtest/gtest.h>

namespace onesum::testing {
namespace {

TEST(SameBitsOfProcesses, OverSharedMemory) {
  for (const int size : {1, 2, 3}) expect_same_bits_as_embedded(size, "shm");
}

TEST(SameBitsOfProcesses, OverTcp) {
  for (const int size : {1, 2, 3}) expect_same_bits_as_embedded(size, "tcp");
}

TEST(SameBitsOfProcesses, OverUcx) { expect_same_bits_as_embedded(2, "ucx"); }

}  // namespace
}  // namespace onesum::testing
