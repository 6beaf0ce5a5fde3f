// The memory of all outboxes and inboxes of a rank: one mapping, whose pages come when they are first used.
#pragma once

#include <cstddef>

#include "engine/transport.h"

namespace onesum::engine {

class Boxes {
 public:
  // Throws resource_exhausted.
  Boxes(int peers, const Limits& limits);
  ~Boxes();
  Boxes(const Boxes&) = delete;
  Boxes& operator=(const Boxes&) = delete;

  std::byte* outbox(int peer, unsigned phase) const noexcept { return memory_ + copy(peer, phase) * stride_; }
  std::byte* inbox(int peer, unsigned phase) const noexcept { return outbox(peer, phase) + bytes_ / 2; }

  // The memory stays for ever: somebody may still write to it.
  void abandon() noexcept { memory_ = nullptr; }

 private:
  std::size_t copy(int peer, unsigned phase) const noexcept {
    return static_cast<std::size_t>(peer) * phases_ + phase;
  }

  unsigned phases_;
  std::size_t stride_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

}  // namespace onesum::engine
