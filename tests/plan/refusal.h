// For tests: what verify says of a plan that it refuses.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/verify.h"

namespace onesum::plan {

// The message with which a plan is refused, or "accepted".
inline std::string refusal(const Plan& plan) {
  try {
    verify(plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

}  // namespace onesum::plan
