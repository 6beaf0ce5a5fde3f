#include "engine/boxes.h"

#include <limits>
#include <string>

#include <sys/mman.h>

#include <onesum/error.h>

namespace onesum::engine {
namespace {

constexpr std::size_t kPage = 4096;

// Whole pages, and one that stays unused, so that copies do not all begin at the same place of a cache.
std::size_t stride_of(std::size_t bytes) noexcept { return (bytes + kPage - 1) / kPage * kPage + kPage; }

}  // namespace

Boxes::Boxes(int peers, const Limits& limits)
    : phases_(limits.phases),
      stride_(stride_of(limits.bytes)),
      bytes_(2 * static_cast<std::size_t>(peers) * limits.phases * stride_) {
  void* mapped = MAP_FAILED;
  if (stride_ <= std::numeric_limits<std::size_t>::max() / 2 / phases_ / static_cast<std::size_t>(peers)) {
    mapped =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (mapped == MAP_FAILED) {
    throw Error(ErrorCode::kResourceExhausted, "cannot map the outboxes and inboxes of " +
                                                   std::to_string(peers) + " ranks, " +
                                                   std::to_string(limits.phases) + " copies of " +
                                                   std::to_string(limits.bytes) + " bytes each");
  }
  memory_ = static_cast<std::byte*>(mapped);
}

Boxes::~Boxes() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

}  // namespace onesum::engine
