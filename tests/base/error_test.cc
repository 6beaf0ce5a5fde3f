// docs/semantics.md, section 8.
#include <gtest/gtest.h>

#include <onesum/error.h>

namespace onesum {
namespace {

TEST(Error, CarriesCodeAndMessage) {
  const Error error(ErrorCode::kAborted, "rank 3 is gone");
  EXPECT_EQ(error.code(), ErrorCode::kAborted);
  EXPECT_STREQ(error.what(), "rank 3 is gone");
}

TEST(Error, CodesHaveNames) {
  EXPECT_EQ(to_string(ErrorCode::kInvalidArgument), "invalid_argument");
  EXPECT_EQ(to_string(ErrorCode::kUnimplemented), "unimplemented");
  EXPECT_EQ(to_string(ErrorCode::kUnavailable), "unavailable");
  EXPECT_EQ(to_string(ErrorCode::kDeadlineExceeded), "deadline_exceeded");
  EXPECT_EQ(to_string(ErrorCode::kAborted), "aborted");
  EXPECT_EQ(to_string(ErrorCode::kResourceExhausted), "resource_exhausted");
  EXPECT_EQ(to_string(ErrorCode::kInternal), "internal");
  EXPECT_EQ(to_string(static_cast<ErrorCode>(99)), "unknown");
}

}  // namespace
}  // namespace onesum
