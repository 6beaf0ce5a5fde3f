#include "engine/ucx/checksum.h"

#include <algorithm>

#include <isa-l/crc.h>

namespace onesum::engine::ucx {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // ISA-L counts in int

std::uint32_t add(std::uint32_t checksum, const void* memory, std::size_t bytes) noexcept {
  // ISA-L does not write, it only lacks the const.
  auto* next = static_cast<unsigned char*>(const_cast<void*>(memory));
  while (bytes != 0) {
    const std::size_t now = std::min(bytes, kMostAtOnce);
    checksum = crc32_iscsi(next, static_cast<int>(now), checksum);
    next += now;
    bytes -= now;
  }
  return checksum;
}

}  // namespace

std::uint32_t checksum_of(const Header& header, const std::byte* payload) noexcept {
  Header unmarked = header;
  unmarked.checksum = 0;
  return ~add(add(~std::uint32_t{0}, &unmarked, sizeof unmarked), payload, header.bytes);
}

}  // namespace onesum::engine::ucx
