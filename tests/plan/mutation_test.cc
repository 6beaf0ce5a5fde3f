#include <gtest/gtest.h>

#include "plan/mutation_checks.h"

namespace onesum::plan {
namespace {

TEST(Mutation, WhateverIsAcceptedIsRight) { check_mutants(20240607, 500, 5); }

}  // namespace
}  // namespace onesum::plan
