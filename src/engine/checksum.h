// CRC32C of what travels between machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace onesum::engine {

// Whether this build can: it takes ISA-L.
bool has_checksums() noexcept;

// The checksum of several stretches of memory, one after the other; 0 in a build that has none.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  std::uint32_t value() const noexcept { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

}  // namespace onesum::engine
