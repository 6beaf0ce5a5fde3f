#include "engine/checksum.h"

#include <algorithm>

#if defined(ONESUM_WITH_ISAL)
#include <isa-l/crc.h>
#endif

namespace onesum::engine {

#if defined(ONESUM_WITH_ISAL)

bool has_checksums() noexcept { return true; }

void Checksum::add(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // ISA-L counts in int
  while (!bytes.empty()) {
    const std::span<const std::byte> now = bytes.first(std::min(bytes.size(), kMostAtOnce));
    // ISA-L does not write, it only lacks the const.
    auto* memory = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(now.data()));
    state_ = crc32_iscsi(memory, static_cast<int>(now.size()), state_);
    bytes = bytes.subspan(now.size());
  }
}

#else

bool has_checksums() noexcept { return false; }

void Checksum::add(std::span<const std::byte> /*bytes*/) noexcept {}

#endif

}  // namespace onesum::engine
