// Memory that is dear to get: of a device, or pinned. Released blocks wait for the next allocation of their
// size class, up to a limit for all together; beyond it, or if there is no more to get, they go back.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace onesum::engine::cuda {

class BlockPool {
 public:
  // Null if there is no more.
  using Get = std::function<void*(std::size_t bytes)>;
  using GiveBack = std::function<void(void* memory)>;

  BlockPool(std::size_t limit_bytes, Get get, GiveBack give_back);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Null if there is no more, even after everything that waits was given back. What Get throws passes.
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;

  std::size_t bytes_in_use() const;

  // What a block for `bytes` really takes: whole pages of 4 KiB, and at most an eighth more than asked for.
  static std::size_t block_bytes(std::size_t bytes) noexcept;

 private:
  using Blocks = std::map<std::size_t, std::vector<void*>>;  // by size

  void* take_free(std::size_t size);  // null: there is none
  Blocks take_all_free();
  void give_back_all(const Blocks& blocks) noexcept;

  const std::size_t limit_bytes_;
  const Get get_;
  const GiveBack give_back_;
  mutable std::mutex mutex_;  // never held while the device is asked
  Blocks free_;
  std::size_t kept_ = 0;
  std::size_t in_use_ = 0;
};

}  // namespace onesum::engine::cuda
