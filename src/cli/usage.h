// A command line that cannot be understood. The message names the option, what was found and what was
// expected.
#pragma once

#include <stdexcept>

namespace onesum::cli {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace onesum::cli
