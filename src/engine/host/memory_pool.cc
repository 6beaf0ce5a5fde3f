#include "engine/host/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include <sys/mman.h>

#include <onesum/error.h>

#if defined(__SANITIZE_ADDRESS__)
#define ONESUM_POISONS_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONESUM_POISONS_MEMORY 1
#endif
#endif
#if defined(ONESUM_POISONS_MEMORY)
#include <sanitizer/asan_interface.h>
#endif

namespace onesum::engine::host {
namespace {

constexpr std::size_t kSteps = 8;            // classes to a doubling
constexpr std::size_t kFirstDoubling = 512;  // below it, classes are kAlignment apart
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostBytes = std::size_t{1} << 62;

// Classes 0..7: 64, 128, …, 512 bytes. Then each doubling in eight steps: 576, 640, …, 1024, 1152, …
std::size_t class_of(std::size_t bytes) noexcept {
  const std::size_t last = std::max(bytes, std::size_t{1}) - 1;
  if (last < kFirstDoubling) return last / MemoryPool::kAlignment;
  const std::size_t octave = static_cast<std::size_t>(std::bit_width(last)) - 10;  // 0: up to 1024
  return kSteps + kSteps * octave + ((last >> (octave + 6)) - kSteps);
}

std::size_t bytes_of_class(std::size_t size_class) noexcept {
  if (size_class < kSteps) return (size_class + 1) * MemoryPool::kAlignment;
  const std::size_t octave = size_class / kSteps - 1;
  return (kSteps + size_class % kSteps + 1) << (octave + 6);
}

// Under AddressSanitizer memory that waits must not be touched, nor what a block has beyond the bytes asked
// for.
void forbid([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ONESUM_POISONS_MEMORY)
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}
void allow([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ONESUM_POISONS_MEMORY)
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

bool is_mapped(std::size_t block_bytes) noexcept { return block_bytes >= MemoryPool::kHugePage; }
std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + kPage - 1) / kPage * kPage; }

// Null where the system has no more.
void* map_on_huge_pages(std::size_t bytes) noexcept {
  constexpr std::size_t kHuge = MemoryPool::kHugePage;
  const std::size_t length = whole_pages(bytes);
  void* mapped = mmap(nullptr, length + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (kHuge - reinterpret_cast<std::uintptr_t>(begin) % kHuge) % kHuge;
  if (before != 0) munmap(begin, before);
  munmap(begin + before + length, kHuge - before);
  madvise(begin + before, length, MADV_HUGEPAGE);  // a wish: without it pages are small
  return begin + before;
}

void* take_from_system(std::size_t block_bytes) noexcept {
  return is_mapped(block_bytes) ? map_on_huge_pages(block_bytes)
                                : std::aligned_alloc(MemoryPool::kAlignment, block_bytes);
}

void return_to_system(void* block, std::size_t block_bytes) noexcept {
  allow(block, block_bytes);
  if (is_mapped(block_bytes)) {
    munmap(block, whole_pages(block_bytes));
  } else {
    std::free(block);
  }
}

}  // namespace

std::size_t MemoryPool::block_bytes(std::size_t bytes) noexcept { return bytes_of_class(class_of(bytes)); }

MemoryPool::~MemoryPool() { give_back(shrink_to(0)); }

void* MemoryPool::allocate(std::size_t bytes) {
  const std::size_t size_class = bytes <= kMostBytes ? class_of(bytes) : kClasses;
  void* block = size_class < kClasses ? reuse(size_class) : nullptr;
  if (block == nullptr) block = allocate_fresh(bytes, size_class);
  forbid(block, sizeof(FreeBlock));  // allowed while it was taken out of its list
  allow(block, bytes);
  return block;
}

void* MemoryPool::reuse(std::size_t size_class) noexcept {
  const std::lock_guard lock(mutex_);
  if (free_[size_class] == nullptr) return nullptr;
  in_use_ += bytes_of_class(size_class);
  return pop(size_class);
}

void* MemoryPool::allocate_fresh(std::size_t bytes, std::size_t size_class) {
  void* block = nullptr;
  if (size_class < kClasses) {
    const std::size_t size = bytes_of_class(size_class);
    block = take_from_system(size);
    if (block == nullptr) {  // what waits for other sizes may make room
      FreeBlock* waiting = nullptr;
      {
        const std::lock_guard lock(mutex_);
        waiting = shrink_to(0);
      }
      give_back(waiting);
      block = take_from_system(size);
    }
    if (block != nullptr) {
      forbid(block, size);
      const std::lock_guard lock(mutex_);
      in_use_ += size;
    }
  }
  if (block == nullptr) {
    throw Error(ErrorCode::kResourceExhausted, "cannot allocate " + std::to_string(bytes) +
                                                   " bytes of host memory; " +
                                                   std::to_string(bytes_in_use()) + " bytes are in use");
  }
  return block;
}

void MemoryPool::release(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  const std::size_t size_class = class_of(bytes);
  const std::size_t size = bytes_of_class(size_class);
  FreeBlock* excess = nullptr;
  {
    const std::lock_guard lock(mutex_);
    in_use_ -= size;
    if (size <= limit_bytes_) {
      excess = shrink_to(limit_bytes_ - size);
      keep(memory, size_class);
    }
  }
  give_back(excess);
  if (size > limit_bytes_) return_to_system(memory, size);
}

void MemoryPool::keep(void* memory, std::size_t size_class) noexcept {
  allow(memory, sizeof(FreeBlock));
  free_[size_class] = new (memory) FreeBlock{free_[size_class], size_class};
  forbid(memory, bytes_of_class(size_class));
  largest_class_ = std::max(largest_class_, size_class);
  kept_ += bytes_of_class(size_class);
}

MemoryPool::FreeBlock* MemoryPool::pop(std::size_t size_class) noexcept {
  FreeBlock* const block = free_[size_class];
  allow(block, sizeof(FreeBlock));
  free_[size_class] = block->next;
  kept_ -= bytes_of_class(size_class);
  return block;
}

// Takes out waiting blocks, the largest first, until no more than `most_kept` bytes are left.
MemoryPool::FreeBlock* MemoryPool::shrink_to(std::size_t most_kept) noexcept {
  FreeBlock* taken = nullptr;
  while (kept_ > most_kept) {
    while (free_[largest_class_] == nullptr) --largest_class_;
    FreeBlock* const block = pop(largest_class_);
    block->next = taken;
    taken = block;
  }
  return taken;
}

void MemoryPool::give_back(FreeBlock* blocks) noexcept {
  while (blocks != nullptr) {
    FreeBlock* const next = blocks->next;
    return_to_system(blocks, bytes_of_class(blocks->size_class));
    blocks = next;
  }
}

std::size_t MemoryPool::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t MemoryPool::bytes_kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace onesum::engine::host
