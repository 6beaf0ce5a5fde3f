// The one error type of the library.
//
// Every function of onesum that cannot do what it was asked throws onesum::Error and nothing else
// (std::bad_alloc excepted). The code says what the caller should do next; the message names the thing, what
// was found and what was expected.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <onesum/export.h>

namespace onesum {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,    // fix the call
  kUnimplemented,      // choose another policy
  kUnavailable,        // rebuild the group
  kDeadlineExceeded,   // wait longer
  kAborted,            // look at the replica or worker that the message names
  kResourceExhausted,  // free memory
  kInternal,           // report a bug
};

// "invalid_argument", "unimplemented", …
ONESUM_API std::string_view to_string(ErrorCode code) noexcept;

class ONESUM_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace onesum
