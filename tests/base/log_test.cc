// docs/configuration.md, ONESUM_LOG.
#include "base/log.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace onesum {
namespace {

class Log : public ::testing::Test {
 protected:
  ~Log() override { set_log_level(LogLevel::kWarning); }

  template <class F>
  static std::string shown(const F& f) {
    ::testing::internal::CaptureStderr();
    f();
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, LevelsHaveNames) {
  EXPECT_EQ(to_string(LogLevel::kError), "error");
  EXPECT_EQ(to_string(LogLevel::kWarning), "warning");
  EXPECT_EQ(to_string(LogLevel::kInfo), "info");
  EXPECT_EQ(to_string(LogLevel::kDebug), "debug");
}

TEST_F(Log, ShowsWhatTheLevelLetsThrough) {
  set_log_level(LogLevel::kInfo);
  EXPECT_TRUE(is_logged(LogLevel::kError));
  EXPECT_TRUE(is_logged(LogLevel::kInfo));
  EXPECT_FALSE(is_logged(LogLevel::kDebug));
  const std::string text = shown([] {
    log(LogLevel::kInfo, "one {} % two");
    log(LogLevel::kDebug, "three");
    log(LogLevel::kError, "four");
  });
  EXPECT_NE(text.find("onesum info: one {} % two\n"), std::string::npos) << text;
  EXPECT_NE(text.find("onesum error: four\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("three"), std::string::npos) << text;
}

TEST_F(Log, ErrorsAreAlwaysShown) {
  set_log_level(LogLevel::kError);
  EXPECT_TRUE(is_logged(LogLevel::kError));
  EXPECT_FALSE(is_logged(LogLevel::kWarning));
}

TEST_F(Log, ALimitEndsWithARemark) {
  set_log_level(LogLevel::kInfo);
  LogLimit limit(2);
  const std::string text = shown([&] {
    for (int i = 0; i < 5; ++i) limit.log(LogLevel::kInfo, "message " + std::to_string(i));
  });
  EXPECT_NE(text.find("message 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("message 1 (further messages of this kind are left out)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("message 2"), std::string::npos) << text;
  EXPECT_FALSE(limit.admits(LogLevel::kInfo));
}

TEST_F(Log, WhatIsNotShownDoesNotUseUpALimit) {
  set_log_level(LogLevel::kWarning);
  LogLimit limit(1);
  EXPECT_FALSE(limit.admits(LogLevel::kInfo));
  limit.log(LogLevel::kInfo, "quiet");
  set_log_level(LogLevel::kInfo);
  EXPECT_TRUE(limit.admits(LogLevel::kInfo));
}

TEST_F(Log, ThreadsShareALimit) {
  set_log_level(LogLevel::kInfo);
  LogLimit limit(10);
  const std::string text = shown([&] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) limit.log(LogLevel::kInfo, "again");
      });
    }
  });
  EXPECT_EQ(std::ranges::count(text, '\n'), 10) << text;
}

}  // namespace
}  // namespace onesum
