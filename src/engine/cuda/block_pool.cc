#include "engine/cuda/block_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace onesum::engine::cuda {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

BlockPool::BlockPool(std::size_t limit_bytes, Get get, GiveBack give_back)
    : limit_bytes_(limit_bytes), get_(std::move(get)), give_back_(std::move(give_back)) {}

BlockPool::~BlockPool() { give_back_all(free_); }

std::size_t BlockPool::block_bytes(std::size_t bytes) noexcept {
  if (bytes <= kPage) return kPage;
  const std::size_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

void* BlockPool::allocate(std::size_t bytes) {
  const std::size_t size = block_bytes(bytes);
  if (void* const block = take_free(size)) return block;
  void* block = get_(size);
  if (block == nullptr) {
    give_back_all(take_all_free());
    block = get_(size);
  }
  if (block != nullptr) {
    const std::scoped_lock lock(mutex_);
    in_use_ += size;
  }
  return block;
}

void* BlockPool::take_free(std::size_t size) {
  const std::scoped_lock lock(mutex_);
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  kept_ -= size;
  in_use_ += size;
  return block;
}

BlockPool::Blocks BlockPool::take_all_free() {
  const std::scoped_lock lock(mutex_);
  kept_ = 0;
  return std::exchange(free_, {});
}

void BlockPool::release(void* memory, std::size_t bytes) noexcept {
  const std::size_t size = block_bytes(bytes);
  {
    const std::scoped_lock lock(mutex_);
    in_use_ -= size;
    if (kept_ + size <= limit_bytes_) {
      free_[size].push_back(memory);
      kept_ += size;
      return;
    }
  }
  give_back_(memory);
}

std::size_t BlockPool::bytes_in_use() const {
  const std::scoped_lock lock(mutex_);
  return in_use_;
}

void BlockPool::give_back_all(const Blocks& blocks) noexcept {
  for (const auto& [size, list] : blocks) {
    for (void* const block : list) give_back_(block);
  }
}

}  // namespace onesum::engine::cuda
