// What tests of two and three worker processes show, with more of them.
#include <gtest/gtest.h>

#include "function_calls.h"
#include "sparse_calls.h"

namespace onesum::testing {
namespace {

TEST(CallsOfProcessesFull, MergedRows) {
  for (const int workers : {4, 5, 8}) expect_same(workers, merged_sums);
  expect_same(5, merged_sums, "tcp");
}

TEST(CallsOfProcessesFull, MixedValues) {
  for (const int workers : {4, 5, 8}) expect_same(workers, mixed_sums);
  expect_same(5, mixed_sums, "tcp");
}

TEST(CallsOfProcessesFull, Functions) {
  expect_same(5, function_sums);
  expect_same(3, function_sums, "tcp");
}

}  // namespace
}  // namespace onesum::testing
