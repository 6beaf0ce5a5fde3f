// The bench's hand-written sums: they must be right to be a bound.
#include <cstring>

#include <gtest/gtest.h>

#include "cli/bench_bound.h"
#include "cli/worker_names.h"

namespace onesum::cli {
namespace {

constexpr std::size_t kElements = 5000;  // neither a multiple of a line nor of a block

Workspace workspace_of(std::size_t devices) {
  return Workspace(Workload{
      .dtype = DType::kUInt32, .shapes = {Shape{kElements}}, .devices = own_device_names("CPU", devices)});
}

std::uint32_t* words(std::byte* memory) { return static_cast<std::uint32_t*>(static_cast<void*>(memory)); }

std::uint32_t value_at(std::size_t device, std::size_t i) {
  return static_cast<std::uint32_t>((device + 1) * 1000003 * (i + 7));
}

void fill(std::span<std::byte* const> arenas) {
  for (std::size_t d = 0; d < arenas.size(); ++d) {
    for (std::size_t i = 0; i < kElements; ++i) words(arenas[d])[i] = value_at(d, i);
  }
}

void expect_sums(std::span<std::byte* const> arenas) {
  for (std::size_t i = 0; i < kElements; ++i) {
    std::uint32_t sum = 0;
    for (std::size_t d = 0; d < arenas.size(); ++d) sum += value_at(d, i);
    for (std::size_t d = 0; d < arenas.size(); ++d)
      ASSERT_EQ(words(arenas[d])[i], sum) << "device " << d << " element " << i;
  }
}

class BoundOf : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};  // devices, threads

TEST_P(BoundOf, SumsInPlace) {
  const auto [devices, threads] = GetParam();
  const Workspace workspace = workspace_of(devices);
  Bound bound(workspace, BoundKind::kInPlace, threads, Stores::kPlain);
  bound.begin_round();
  for (int i = 0; i < 3; ++i) {
    fill(workspace.result_arenas());
    bound.call(1);
    expect_sums(workspace.result_arenas());
  }
  bound.end_round();
}

TEST_P(BoundOf, SumsOutOfPlaceWithEitherKindOfStores) {
  const auto [devices, threads] = GetParam();
  const Workspace workspace = workspace_of(devices);
  fill(workspace.value_arenas());
  for (const Stores stores : {Stores::kPlain, Stores::kStreaming}) {
    Bound bound(workspace, BoundKind::kOutOfPlace, threads, stores);
    for (int round = 0; round < 2; ++round) {
      for (std::byte* arena : workspace.result_arenas()) std::memset(arena, 0xff, workspace.arena_bytes());
      bound.begin_round();
      bound.call(2);
      bound.end_round();
      expect_sums(workspace.result_arenas());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DevicesAndThreads, BoundOf,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 9), ::testing::Values(1, 2, 3)));

TEST(FastestBound, HasNothingToDoForOneDeviceInPlace) {
  const Workspace workspace = workspace_of(1);
  EXPECT_TRUE(FastestBound(workspace, BoundKind::kInPlace, 2).is_empty());
  EXPECT_FALSE(FastestBound(workspace, BoundKind::kOutOfPlace, 2).is_empty());
}

// Of two processes each works on two halves of its replica, as if one were the other's.
TEST(Bound, OfSeveralProcessesReadsAndWritesAsMuchAsOneOfThemMust) {
  const Workspace workspace(Workload{.dtype = DType::kUInt32,
                                     .shapes = {Shape{kElements}},
                                     .devices = device_names(worker_names(2), "CPU", 1),
                                     .processes = 2,
                                     .rank = 1});
  ASSERT_EQ(workspace.value_arenas().size(), 1U);
  fill(workspace.value_arenas());
  Lockstep alone;
  const std::unique_ptr<Meeting> meeting = Meeting::make(alone);
  ASSERT_NE(meeting, nullptr);
  Bound bound(workspace, BoundKind::kOutOfPlace, 2, Stores::kPlain, meeting.get());
  bound.begin_round();
  bound.call(3);
  bound.end_round();
  const std::size_t half = workspace.arena_bytes() / kLine / 2 * kLine / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < half; ++i) {
    const std::uint32_t other = half + i < kElements ? value_at(0, half + i) : 0;
    ASSERT_EQ(words(workspace.result_arenas()[0])[i], value_at(0, i) + other) << i;
    ASSERT_EQ(words(workspace.result_arenas()[0])[half + i], value_at(0, i) + other) << i;
  }
}

TEST(Bound, OfProcessesWhoseReplicasAreALineEach) {
  const Workspace workspace(Workload{.dtype = DType::kUInt32,
                                     .shapes = {Shape{1}},
                                     .devices = device_names(worker_names(3), "CPU", 1),
                                     .processes = 3});
  words(workspace.value_arenas()[0])[0] = 7;
  Bound bound(workspace, BoundKind::kOutOfPlace, 1, Stores::kPlain);
  bound.begin_round();
  bound.call(1);
  bound.end_round();
  EXPECT_EQ(words(workspace.result_arenas()[0])[0], 7U);
}

TEST(FastestBound, TakesTheTimesOfTheFastestWay) {
  const Workspace workspace = workspace_of(2);
  FastestBound bound(workspace, BoundKind::kOutOfPlace, 2);
  Lockstep alone;
  for (int round = 0; round < 2; ++round) bound.measure_round({.seconds = 0.001, .rounds = 2}, alone);
  EXPECT_EQ(bound.times().rounds.size(), 2U);
  EXPECT_GT(bound.times().min(), 0);
}

}  // namespace
}  // namespace onesum::cli
