#include "engine/host/memory_pool.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/error.h>

namespace onesum::engine::host {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kNoLimit = std::size_t{1} << 40;

TEST(MemoryPool, WastesAtMostAnEighth) {
  std::size_t previous = 0;
  for (std::size_t bytes = 1; bytes < std::size_t{1} << 45; bytes += 1 + bytes / 61) {
    const std::size_t block = MemoryPool::block_bytes(bytes);
    ASSERT_GE(block, bytes);
    ASSERT_LE(block, std::max(bytes + 63, bytes + bytes / 8 + 1)) << bytes;
    ASSERT_EQ(block % MemoryPool::kAlignment, 0U);
    ASSERT_GE(block, previous);
    ASSERT_EQ(MemoryPool::block_bytes(block), block);
    previous = block;
  }
}

TEST(MemoryPool, GivesReleasedMemoryAgain) {
  MemoryPool pool(kNoLimit);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{100'000}, 3 * kMiB}) {
    void* first = pool.allocate(bytes);
    pool.release(first, bytes);
    void* second = pool.allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    pool.release(second, bytes);
  }
}

TEST(MemoryPool, CountsWhatIsOutAndWhatWaits) {
  MemoryPool pool(kNoLimit);
  void* memory = pool.allocate(4096);
  EXPECT_EQ(pool.bytes_in_use(), 4096U);
  EXPECT_EQ(pool.bytes_kept(), 0U);
  pool.release(memory, 4096);
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_EQ(pool.bytes_kept(), 4096U);
}

TEST(MemoryPool, LargeBlocksBeginOnHugePages) {
  MemoryPool pool(kNoLimit);
  for (const std::size_t bytes : {2 * kMiB, 2 * kMiB + 1, 7 * kMiB}) {
    void* memory = pool.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % MemoryPool::kHugePage, 0U);
    std::memset(memory, 1, bytes);
    pool.release(memory, bytes);
  }
}

TEST(MemoryPool, KeepsNoMoreThanItsLimitAndDropsTheLargestFirst) {
  MemoryPool pool(10 * kMiB);
  void* small = pool.allocate(kMiB);
  void* middle = pool.allocate(4 * kMiB);
  void* large = pool.allocate(8 * kMiB);
  void* huge = pool.allocate(12 * kMiB);
  pool.release(large, 8 * kMiB);
  pool.release(small, kMiB);
  EXPECT_EQ(pool.bytes_kept(), 9 * kMiB);
  pool.release(middle, 4 * kMiB);
  EXPECT_EQ(pool.bytes_kept(), 5 * kMiB) << "the block of 8 MiB had to go";
  pool.release(huge, 12 * kMiB);
  EXPECT_EQ(pool.bytes_kept(), 5 * kMiB) << "a block above the limit is never kept";
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_EQ(pool.allocate(kMiB), small);
  EXPECT_EQ(pool.allocate(4 * kMiB), middle);
  pool.release(small, kMiB);
  pool.release(middle, 4 * kMiB);
}

TEST(MemoryPool, KeepsNothingWithALimitOfZero) {
  MemoryPool pool(0);
  void* memory = pool.allocate(100);
  pool.release(memory, 100);
  EXPECT_EQ(pool.bytes_kept(), 0U);
}

TEST(MemoryPool, SaysHowMuchIsInUseWhenThereIsNoMore) {
  MemoryPool pool(kNoLimit);
  void* memory = pool.allocate(3 * kMiB);
  try {
    pool.allocate(std::size_t{1} << 60);
    FAIL() << "an exbibyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    const std::string message = error.what();
    EXPECT_NE(message.find("1152921504606846976 bytes"), std::string::npos) << message;
    EXPECT_NE(message.find("3145728 bytes are in use"), std::string::npos) << message;
  }
  EXPECT_EQ(pool.bytes_in_use(), 3 * kMiB);
  pool.release(memory, 3 * kMiB);
}

TEST(MemoryPool, ManyThreadsAtOnce) {
  MemoryPool pool(kMiB);
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id) {
    threads.emplace_back([&pool, id] {
      std::mt19937 random(id);
      std::vector<std::pair<unsigned char*, std::size_t>> mine;
      for (int round = 0; round < 5000; ++round) {
        if (mine.size() < 8 && random() % 2 == 0) {
          const std::size_t bytes = 1 + random() % (random() % 50 == 0 ? 300'000 : 3000);
          auto* memory = static_cast<unsigned char*>(pool.allocate(bytes));
          memory[0] = memory[bytes - 1] = static_cast<unsigned char>(id);
          mine.emplace_back(memory, bytes);
        } else if (!mine.empty()) {
          const auto [memory, bytes] = mine.back();
          mine.pop_back();
          ASSERT_EQ(memory[0], id);
          ASSERT_EQ(memory[bytes - 1], id);
          pool.release(memory, bytes);
        }
      }
      for (const auto& [memory, bytes] : mine) pool.release(memory, bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_LE(pool.bytes_kept(), kMiB);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(MemoryPoolDeathTest, ReleasedMemoryIsPoisoned) {
  MemoryPool pool(kNoLimit);
  auto* memory = static_cast<volatile unsigned char*>(pool.allocate(100));
  memory[99] = 1;
  EXPECT_DEATH(memory[100] = 1, "use-after-poison");
  pool.release(const_cast<unsigned char*>(memory), 100);
  EXPECT_DEATH(memory[0] = 1, "use-after-poison");
}
#endif

}  // namespace
}  // namespace onesum::engine::host
