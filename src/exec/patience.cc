#include "exec/patience.h"

#include <poll.h>
#include <sched.h>

namespace onesum::exec {
namespace {

// Looks in a row before the core is left to others, where there are cores enough.
constexpr std::uint32_t kGlances = 20;
constexpr std::uint32_t kSpins = 10;  // after these
constexpr std::uint32_t kSpinsInACrowd = 0;
// Turns between two looks at the clock, and in which only the transport is asked: in a crowd each may take as
// long as somebody else's turn at the core.
constexpr std::uint32_t kTurnsPerLook = 64;
constexpr std::uint32_t kTurnsOfTransport = 4;
constexpr std::chrono::microseconds kAwake{1000};

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Patience::~Patience() {
  if (is_armed_) transport_.disarm();
}

void Patience::reset() noexcept {
  glances_ = 0;
  looks_ = 0;
  if (is_armed_) transport_.disarm();
  is_armed_ = false;
}

bool Patience::glance() {
  if (is_crowded_) return false;
  while (glances_ < kGlances) {
    ++glances_;
    relax();
    if (transport_.progress()) return true;
  }
  return false;
}

bool Patience::pause(std::chrono::milliseconds longest) {
  if (is_armed_) {  // and asked again since, in vain
    sleep(longest);
    transport_.disarm();
    is_armed_ = false;
    return true;
  }
  if (looks_ == 0) sleep_after_ = std::chrono::steady_clock::now() + kAwake;
  do {
    // Others first: nobody waits between what progress finds and who wants it.
    if (looks_ >= (is_crowded_ ? kSpinsInACrowd : kSpins)) {
      sched_yield();
    } else {
      relax();
    }
    ++looks_;
    if (transport_.progress()) break;
  } while (looks_ % kTurnsOfTransport != 0);
  if (looks_ % kTurnsPerLook != 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now >= sleep_after_) {
    is_armed_ = true;
    if (!transport_.arm()) {
      transport_.disarm();
      is_armed_ = false;
    }
  }
  if (now < sleep_after_ + longest) return false;
  sleep_after_ = now;
  return true;
}

void Patience::sleep(std::chrono::milliseconds longest) {
  pollfd event{transport_.event_fd(), POLLIN, 0};
  ::poll(&event, 1, static_cast<int>(longest.count()));
}

}  // namespace onesum::exec
