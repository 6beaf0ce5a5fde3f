// What a worker leaves of its last calls.
#include "cluster/flight_recorder.h"

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace onesum::cluster {
namespace {

struct alignas(64) Memory {
  std::array<std::byte, 4096> bytes{};
};

TEST(FlightRecorder, TellsWhereItWas) {
  Memory memory;
  FlightRecorder recorder(memory.bytes);
  EXPECT_TRUE(recorded_calls(memory.bytes).empty());
  recorder.enter(0);
  recorder.describe("a sum");
  recorder.leave(true);
  recorder.enter(1);
  recorder.describe("another one, described at length");
  recorder.set_token(77);
  recorder.set_progress(5, 2);
  const std::vector<RecordedCall> calls = recorded_calls(memory.bytes);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0], (RecordedCall{0, RecordedState::kCompleted, 0, 0, -1, "a sum"}));
  EXPECT_EQ(calls[1],
            (RecordedCall{1, RecordedState::kInside, 77, 5, 2, "another one, described at length"}));
  EXPECT_EQ(to_string(calls[0]), "call 0 (a sum), which it completed");
  EXPECT_EQ(to_string(calls[1]), "call 1 (another one, described at length), round 5, waiting for worker 2");
}

TEST(FlightRecorder, KeepsTheLastOnes) {
  Memory memory;
  FlightRecorder recorder(memory.bytes);
  for (std::uint64_t call = 0; call < 1000; ++call) {
    recorder.enter(call);
    recorder.describe(call % 2 == 0 ? std::string(500, 'x') : std::string());
    recorder.leave(call % 3 != 0);
  }
  const std::vector<RecordedCall> calls = recorded_calls(memory.bytes);
  ASSERT_GE(calls.size(), 16U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::uint64_t number = 1000 - calls.size() + i;
    EXPECT_EQ(calls[i].number, number);
    EXPECT_EQ(calls[i].state, number % 3 != 0 ? RecordedState::kCompleted : RecordedState::kFailed);
    EXPECT_EQ(calls[i].text.empty(), number % 2 != 0);
  }
}

// A text that is known is written once; one that never came is not what was there before.
TEST(FlightRecorder, KnowsWhichTextItHas) {
  Memory memory;
  FlightRecorder recorder(memory.bytes);
  std::uint64_t number = 0;
  const auto call = [&](std::uint64_t known, std::string_view text) {
    recorder.enter(number, known);
    if (!text.empty()) recorder.describe(text);
    const std::vector<RecordedCall> calls = recorded_calls(memory.bytes);
    EXPECT_EQ(calls.back().number, number++);
    recorder.leave(true);
    return calls.back().text;
  };
  const auto fill = [&](std::uint64_t known, std::string_view text) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(call(known, text), text);
  };
  fill(1, "one");
  fill(1, "one");
  fill(2, "another");
  fill(0, "one that is new");
  fill(2, "another");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(call(3, ""), "");
  fill(2, "another");
}

TEST(FlightRecorder, WithoutMemoryNothingIsWritten) {
  FlightRecorder recorder;
  recorder.enter(1);
  recorder.describe("a sum");
  recorder.set_progress(1, 1);
  recorder.leave(true);
}

TEST(FlightRecorder, ReadsAnyBytes) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> bytes(random() % 5000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4);
    for (const RecordedCall& call : recorded_calls(bytes)) EXPECT_FALSE(to_string(call).empty());
  }
}

}  // namespace
}  // namespace onesum::cluster
