// What the tests of strategies share.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>
#include <onesum/strategy.h>

namespace onesum {

using namespace std::chrono_literals;

// Ends the program with a message if it lives longer than the limit: a test that would hang fails instead.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit = 60s)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, limit, [this] { return is_over_; })) return;
          std::fprintf(stderr, "watchdog: the test hangs\n");
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

// Every suite of strategies: under a watchdog.
class StrategyTest : public testing::Test {
 private:
  Watchdog watchdog_;
};

// Parameter: the number of replicas.
class ReplicasTest : public testing::TestWithParam<int> {
 private:
  Watchdog watchdog_;
};

// "CPU:0" … "CPU:n-1"
inline std::vector<std::string> cpus(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("CPU:" + std::to_string(i));
  return names;
}

inline Tensor scalar(float value, const Device& device) { return Tensor::from<float>({value}, {}, device); }

inline Tensor tensor_of(std::vector<float> values, const Device& device) {
  return Tensor::from<float>(std::span<const float>(values), {static_cast<std::int64_t>(values.size())},
                             device);
}

inline float number(const Tensor& tensor) { return tensor.data<float>()[0]; }

inline std::vector<float> numbers(const Tensor& tensor) {
  const auto values = tensor.data<float>();
  return {values.begin(), values.end()};
}

// Options with a timeout.
inline CommunicationOptions in(std::chrono::milliseconds timeout) {
  CommunicationOptions options;
  options.timeout = timeout;
  return options;
}

// The onesum::Error that fn throws; fails the test if it throws none.
template <class Fn>
Error error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no onesum::Error was thrown";
  return {ErrorCode::kInternal, "no error"};
}

MATCHER_P2(IsError, code, message, "") {
  *result_listener << to_string(arg.code()) << ": " << arg.what();
  return arg.code() == code && testing::Matches(message)(std::string(arg.what()));
}

// The error that each replica saw, by replica: filled by record() inside replicas.
class ErrorLog {
 public:
  explicit ErrorLog(const MirroredStrategy& strategy) : errors_(strategy.devices().size()) {}

  // Calls fn, keeps the Error it throws, and throws it on.
  template <class Fn>
  auto record(const ReplicaContext& replica, Fn&& fn) {
    try {
      return fn();
    } catch (const Error& error) {
      errors_[replica.replica_id()] = error;
      throw;
    }
  }
  const std::optional<Error>& of(int replica) const { return errors_.at(replica); }

 private:
  std::vector<std::optional<Error>> errors_;
};

}  // namespace onesum
