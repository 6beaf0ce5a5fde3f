// Messages between workers after something went wrong, and groups that are never complete.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "workers.h"

namespace onesum::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

CommunicationOptions within(milliseconds timeout) {
  CommunicationOptions options;
  options.timeout = timeout;
  return options;
}

Tensor numbers(float value) {
  Tensor tensor = Tensor::empty(DType::kFloat32, Shape{4}, "CPU:0");
  for (float& one : tensor.data<float>()) one = value;
  return tensor;
}

// What a call throws, with its code; "good" if nothing.
template <class Call>
std::string outcome(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "good";
}

class MessageFailures : public ::testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  static std::vector<WorkerEnd> run(const Body& body) {
    return run_workers(2, body, {{"ONESUM_TRANSPORT", GetParam()}});
  }
};

// A recv that gave up before its turn would leave its message to the next one.
TEST_P(MessageFailures, ATimeoutInTheQueueEndsTheWay) {
  const auto ends = run([](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    if (rank == 0) {
      cluster.barrier();  // the other one's second recv has given up
      for (const float value : {1.0F, 2.0F}) {
        outcome([&] { messages.send(numbers(value), 1, 0, within(milliseconds(3000))); });
      }
      return "";
    }
    const Tensor first = numbers(0);
    Work work = messages.start_recv(first, 0);
    const std::string second = outcome([&] { messages.recv(numbers(0), 0, 0, within(milliseconds(50))); });
    cluster.barrier();
    work.wait();
    const Tensor third = numbers(0);
    const std::string last = outcome([&] { messages.recv(third, 0); });
    if (first.data<float>()[0] != 1) return "the first message is wrong";
    if (third.data<float>()[0] != 0) return "the third recv got the second message";
    return second + "\n" + last;
  });
  EXPECT_THAT(ends[1].text, HasSubstr("\ndeadline_exceeded"));
}

TEST_P(MessageFailures, AGroupThatWasNeverCompleteEndsTheWay) {
  const auto ends = run([](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    std::string text;
    if (rank == 0) text = outcome([&] { messages.send(numbers(1), 1, 0, within(milliseconds(100))); });
    cluster.barrier();
    for (int i = 0; i < 2; ++i) {
      text += "\n" + outcome([&] {
                if (rank == 0) {
                  messages.send(numbers(2), 1, 0, within(milliseconds(5000)));
                } else {
                  messages.recv(numbers(0), 0, 0, within(milliseconds(5000)));
                }
              });
    }
    cluster.barrier();
    return text;
  });
  EXPECT_THAT(ends[0].text, AllOf(HasSubstr("task:1"), HasSubstr("\ndeadline_exceeded")));
  EXPECT_THAT(ends[1].text, AllOf(HasSubstr("aborted"), HasSubstr("task:0"), HasSubstr("gave up")));
}

// In both cases long before the timeout.
TEST_P(MessageFailures, WhoHasClosedTheClusterIsNotWaitedFor) {
  for (const bool meanwhile : {false, true}) {
    const auto ends = run([&](int rank) -> std::string {
      Cluster cluster = Cluster::from_environment();
      const std::vector<int> both{0, 1};
      PointToPoint messages(cluster);
      if (rank == 1) {
        if (meanwhile) std::this_thread::sleep_for(milliseconds(200));
        cluster.close();
        std::this_thread::sleep_for(milliseconds(1000));  // its process lives
        return "";
      }
      if (!meanwhile) std::this_thread::sleep_for(milliseconds(200));
      const std::string group = outcome([&] { cluster.group(both, "both", milliseconds(600000)); });
      return group + "\n" + outcome([&] { messages.recv(numbers(0), 1, 0, within(milliseconds(600000))); });
    });
    EXPECT_THAT(ends[0].text, AllOf(HasSubstr("closed the cluster"), HasSubstr("\naborted")));
  }
}

TEST_P(MessageFailures, GroupsThatNobodyComesToCostNothingElse) {
  const auto ends = run([](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    const std::vector<int> both{0, 1};
    for (int i = 0; rank == 0 && i < 1200; ++i) {
      const std::string ended = outcome([&] { cluster.group(both, "both", milliseconds(0)); });
      if (ended.find("deadline_exceeded") == std::string::npos) return ended;
    }
    return outcome([&] { cluster.barrier(); });
  });
  for (const WorkerEnd& end : ends) EXPECT_EQ(end.text, "good");
}

INSTANTIATE_TEST_SUITE_P(Transports, MessageFailures, ::testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace onesum::testing
