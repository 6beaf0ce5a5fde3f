#include <gtest/gtest.h>

#include "plan/mutation_checks.h"

namespace onesum::plan {
namespace {

TEST(MutationFull, WhateverIsAcceptedIsRight) {
  for (std::uint64_t seed = 1; seed <= 10 && !::testing::Test::HasFailure(); ++seed)
    check_mutants(seed, 2000, 12);
}

}  // namespace
}  // namespace onesum::plan
