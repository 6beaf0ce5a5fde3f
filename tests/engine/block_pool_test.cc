#include "engine/cuda/block_pool.h"

#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

namespace onesum::engine::cuda {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kNoLimit = std::size_t{1} << 40;

// So many bytes and no more.
class Source {
 public:
  explicit Source(std::size_t bytes) : left_(bytes) {}

  BlockPool make_pool(std::size_t limit) {
    return {limit, [this](std::size_t bytes) { return get(bytes); },
            [this](void* memory) { give_back(memory); }};
  }
  void break_down() { is_broken_ = true; }
  std::size_t given() const { return blocks_.size(); }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };

  void* get(std::size_t bytes) {
    if (is_broken_) throw std::runtime_error("broken");
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    auto memory = std::make_unique<std::byte[]>(bytes);
    void* const address = memory.get();
    blocks_[address] = {std::move(memory), bytes};
    return address;
  }
  void give_back(void* memory) {
    left_ += blocks_.at(memory).bytes;
    blocks_.erase(memory);
  }

  std::size_t left_;
  bool is_broken_ = false;
  std::map<void*, Block> blocks_;
};

TEST(BlockPool, GivesReleasedBlocksAgain) {
  Source source(kNoLimit);
  BlockPool pool = source.make_pool(kNoLimit);
  void* const first = pool.allocate(3 * kPage);
  EXPECT_EQ(pool.bytes_in_use(), 3 * kPage);
  pool.release(first, 3 * kPage);
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_EQ(pool.allocate(3 * kPage), first);
  EXPECT_EQ(pool.bytes_in_use(), 3 * kPage);
  pool.release(first, 3 * kPage);
}

TEST(BlockPool, GivesBackWhatIsAboveItsLimit) {
  Source source(kNoLimit);
  BlockPool pool = source.make_pool(kPage);
  void* const small = pool.allocate(kPage);
  void* const large = pool.allocate(2 * kPage);
  pool.release(large, 2 * kPage);
  EXPECT_EQ(source.given(), 1U);
  pool.release(small, kPage);
  EXPECT_EQ(source.given(), 1U) << "it is kept";
}

TEST(BlockPool, GivesBackWhatWaitsWhereThereIsNoMore) {
  Source source(3 * kPage);
  BlockPool pool = source.make_pool(kNoLimit);
  pool.release(pool.allocate(2 * kPage), 2 * kPage);
  void* const large = pool.allocate(3 * kPage);
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(pool.allocate(kPage), nullptr);
  EXPECT_EQ(pool.bytes_in_use(), 3 * kPage) << "what was not given does not count";
  pool.release(large, 3 * kPage);
}

TEST(BlockPool, CountsNothingWhereItsSourceThrows) {
  Source source(kNoLimit);
  BlockPool pool = source.make_pool(kNoLimit);
  void* const kept = pool.allocate(kPage);
  source.break_down();
  EXPECT_THROW(pool.allocate(2 * kPage), std::runtime_error);
  EXPECT_EQ(pool.bytes_in_use(), kPage);
  pool.release(kept, kPage);
  EXPECT_EQ(pool.bytes_in_use(), 0U);
}

}  // namespace
}  // namespace onesum::engine::cuda
