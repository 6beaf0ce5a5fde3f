// Memory for results that keeps its pages: a fresh page costs a microsecond or two, several times what it
// costs to fill it with sums.
//
// Blocks come in size classes, eight to a doubling, so at most an eighth of a large block is unused. Released
// blocks wait in a list per class for the next allocation of that class, up to a limit for all of them
// together; beyond it the largest go back to the system first. Blocks of 2 MiB and more are mapped on huge
// pages. Thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>

namespace onesum::engine::host {

class MemoryPool {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  explicit MemoryPool(std::size_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}
  // Returns all kept blocks to the system. Blocks still out must not be used or released afterwards.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Throws resource_exhausted.
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;

  // Of blocks that are out, and of blocks that wait.
  std::size_t bytes_in_use() const;
  std::size_t bytes_kept() const;

  // What a block for `bytes` really takes.
  static std::size_t block_bytes(std::size_t bytes) noexcept;

 private:
  struct FreeBlock {  // at the beginning of a block that waits
    FreeBlock* next;
    std::size_t size_class;
  };
  static constexpr std::size_t kClasses = 8 * 64;

  void* reuse(std::size_t size_class) noexcept;
  void* allocate_fresh(std::size_t bytes, std::size_t size_class);
  void keep(void* memory, std::size_t size_class) noexcept;
  FreeBlock* pop(std::size_t size_class) noexcept;
  FreeBlock* shrink_to(std::size_t most_kept) noexcept;
  static void give_back(FreeBlock* blocks) noexcept;

  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;  // held for a few instructions, never across a system call
  std::array<FreeBlock*, kClasses> free_{};
  std::size_t largest_class_ = 0;  // no class above it has free blocks
  std::size_t in_use_ = 0;
  std::size_t kept_ = 0;
};

}  // namespace onesum::engine::host
