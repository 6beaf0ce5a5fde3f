#include <gtest/gtest.h>

#include "plan/mutation_checks.h"

namespace onesum::plan {
namespace {

TEST(Mutation, WhateverIsAcceptedIsRight) { check_mutants(sample_bases(), 20240607, 500, 5); }

TEST(Mutation, WhateverIsAcceptedOfAnAlgorithmIsRight) { check_mutants(algorithm_bases(), 4711, 200, 4); }

}  // namespace
}  // namespace onesum::plan
