// How plan/* refuses a plan: an Error with code invalid_argument.
#pragma once

#include <string>

#include <onesum/error.h>

namespace onesum::plan {

[[noreturn]] inline void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace onesum::plan
