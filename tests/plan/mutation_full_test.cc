#include <gtest/gtest.h>

#include "plan/mutation_checks.h"

namespace onesum::plan {
namespace {

TEST(MutationFull, WhateverIsAcceptedIsRight) {
  for (std::uint64_t seed = 1; seed <= 10 && !::testing::Test::HasFailure(); ++seed)
    check_mutants(sample_bases(), seed, 2000, 12);
}

TEST(MutationFull, WhateverIsAcceptedOfAnAlgorithmIsRight) {
  for (std::uint64_t seed = 1; seed <= 3 && !::testing::Test::HasFailure(); ++seed)
    check_mutants(algorithm_bases(), seed, 1000, 8);
}

}  // namespace
}  // namespace onesum::plan
