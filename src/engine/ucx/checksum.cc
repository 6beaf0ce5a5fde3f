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

std::uint32_t checksum_of(const Header& header, std::span<const ucp_dt_iov_t> payload) noexcept {
  Header unmarked = header;
  unmarked.checksum = 0;
  std::uint32_t checksum = add(~std::uint32_t{0}, &unmarked, sizeof unmarked);
  std::size_t left = header.bytes;
  for (const ucp_dt_iov_t& stretch : payload) {
    const std::size_t bytes = std::min(left, stretch.length);
    checksum = add(checksum, stretch.buffer, bytes);
    left -= bytes;
  }
  return ~checksum;
}

}  // namespace onesum::engine::ucx
