#include "api/outboxes.h"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace onesum::api {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Without the headers, which come on top.
std::size_t bytes_of(OutboxRequest request) {
  request.by_network = true;
  return limits_of(request).bytes;
}

std::size_t all_of(const OutboxRequest& request) {
  const unsigned phases = limits_of(request).phases;
  return 2 * phases * bytes_of(request) * request.workers;  // both directions, to each other one and to all
}

TEST(Outboxes, AreBoundedWhateverTheNumberOfWorkers) {
  for (const bool is_spread : {false, true}) {
    for (const bool is_crowded : {false, true}) {
      std::size_t before = ~std::size_t{0};
      for (const std::size_t workers : {2, 3, 4, 8, 16, 33, 34, 100, 1000, 4096}) {
        const OutboxRequest request{workers, is_spread, 64 * kMiB, false, is_crowded};
        EXPECT_LE(all_of(request), 64 * kMiB) << workers;
        EXPECT_LE(all_of(request) / workers, 2 * kMiB) << workers;
        EXPECT_LE(limits_of(request).bytes, before) << workers;
        EXPECT_EQ(limits_of(request).bytes % engine::kMessageAlignment, 0U) << workers;
        before = limits_of(request).bytes;
      }
    }
  }
}

TEST(Outboxes, ShrinkWithTheNumberOfWorkersOfAMachine) {
  EXPECT_EQ(bytes_of({2, false, 64 * kMiB}), std::size_t{256} << 10);
  for (const auto& [workers, kibs] : {std::pair{3, 128}, {4, 64}, {5, 64}, {8, 32}, {16, 16}, {30, 16}}) {
    const std::size_t bytes = limits_of({static_cast<std::size_t>(workers), false, 64 * kMiB}).bytes;
    EXPECT_EQ(std::bit_floor(bytes), static_cast<std::size_t>(kibs) << 10) << workers;
  }
  EXPECT_EQ(bytes_of({8, true, 64 * kMiB}), std::size_t{256} << 10);
}

TEST(Outboxes, OfManyWorkersOnFewCoresAreTwo) {
  for (const std::size_t workers : {3, 4, 16}) {
    EXPECT_EQ(limits_of({workers, false, 64 * kMiB, false, true}).phases, 2U) << workers;
    EXPECT_EQ(limits_of({workers, false, 64 * kMiB, false, false}).phases, 4U) << workers;
    EXPECT_EQ(limits_of({workers, false, 64 * kMiB, true, true}).phases, 4U) << "over a network";
    EXPECT_EQ(limits_of({workers, true, 64 * kMiB, false, true}).phases, 4U) << "on several machines";
  }
  EXPECT_EQ(limits_of({2, false, 64 * kMiB, false, true}).phases, 4U);
}

// Messages that fill a copy but for their headers, as those of tensors do whose sizes are powers of two.
TEST(Outboxes, HaveRoomForHeadersOnTop) {
  for (const std::size_t workers : {2, 4, 8, 16}) {
    const std::size_t bytes = limits_of({workers, false, 64 * kMiB}).bytes;
    const std::size_t power = std::bit_floor(bytes);
    EXPECT_GE(bytes, 2 * (power / 2 + engine::kMessageHeader)) << workers;
    EXPECT_LE(bytes, power * 2) << workers;
  }
  EXPECT_EQ(limits_of({4096, false, 64 * kMiB}).bytes, std::size_t{2} << 10);
  for (const std::size_t workers : {2, 4, 100, 4096}) {
    const std::size_t bytes = bytes_of({workers, false, 64 * kMiB});
    EXPECT_LE(limits_of({workers, false, 64 * kMiB}).bytes, bytes + bytes / 128) << workers;
    EXPECT_EQ(limits_of({workers, true, 64 * kMiB}).bytes, bytes_of({workers, true, 64 * kMiB})) << workers;
  }
}

// What a network would need for the other direction is room to write elsewhere in every round.
TEST(Outboxes, OfTwoWorkersHaveRoomForTurns) {
  const engine::Limits two = limits_of({2, false, 64 * kMiB});
  EXPECT_EQ(two.room, 2 * two.bytes);
  EXPECT_EQ(limits_of({2, true, 64 * kMiB}).room, 0U);
  EXPECT_EQ(limits_of({3, false, 64 * kMiB}).room, 0U);
}

// A pack of 256 KiB and a worker's part of its sums, in messages of their own.
TEST(Outboxes, OfAllHaveRoomForAPackWhereWorkersShareMemory) {
  for (const std::size_t workers : {8U, 16U}) {
    EXPECT_GE(limits_of({workers, false, 64 * kMiB}).common_bytes,
              256 * kMiB / 1024 * (workers + 1) / workers + 2 * engine::kMessageHeader);
  }
  EXPECT_LT(limits_of({16, false, 64 * kMiB}).common_bytes, kMiB / 2);
  EXPECT_EQ(limits_of({2, false, 64 * kMiB}).common_bytes, 0U);
  EXPECT_EQ(limits_of({8, true, 64 * kMiB}).common_bytes, 0U) << "on several machines";
  EXPECT_EQ(limits_of({8, false, 64 * kMiB, true}).common_bytes, 0U) << "over a network";
  EXPECT_LT(limits_of({8, false, 4 * kMiB}).common_bytes, limits_of({8, false, 64 * kMiB}).common_bytes);
}

TEST(Outboxes, AreSettable) {
  EXPECT_EQ(bytes_of({2, true, 256 * kMiB}), kMiB);
  EXPECT_EQ(bytes_of({2, false, kMiB}), std::size_t{4} << 10);
  EXPECT_GT(limits_of({8, false, 256 * kMiB}).bytes, 3 * limits_of({8, false, 64 * kMiB}).bytes);
  EXPECT_EQ(limits_of({1, false, 0}).phases, 4U);
  testing::expect_error([] { limits_of({2, false, kMiB / 4}); }, ErrorCode::kInvalidArgument,
                        {"ONESUM_OUTBOX_BYTES is 262144", "at least 524288 with 2 workers"});
  testing::expect_error([] { limits_of({4096, false, kMiB}); }, ErrorCode::kInvalidArgument,
                        {"at least 67108864 with 4096 workers"});
}

}  // namespace
}  // namespace onesum::api
