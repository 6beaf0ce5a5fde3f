// For tests: a call must throw onesum::Error with a code and a message that names all of `parts`.
#pragma once

#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <onesum/error.h>

namespace onesum::testing {

template <class Call>
void expect_error(const Call& call, ErrorCode code, std::initializer_list<std::string_view> parts,
                  std::source_location where = std::source_location::current()) {
  const auto fail = [&](const std::string& message) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << message;
  };
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.code() != code) {
      fail("code " + std::string(to_string(error.code())) + ", expected " + std::string(to_string(code)) +
           ": " + message);
    }
    for (const std::string_view part : parts) {
      if (message.find(part) == std::string::npos)
        fail("\"" + std::string(part) + "\" is not in: " + message);
    }
    return;
  }
  fail("no error");
}

template <class Call>
void expect_invalid(const Call& call, std::initializer_list<std::string_view> parts,
                    std::source_location where = std::source_location::current()) {
  expect_error(call, ErrorCode::kInvalidArgument, parts, where);
}

}  // namespace onesum::testing
