// Lanes by the time at which something happens to them; the earliest comes first, of equals the lowest
// number.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onesum::plan {

// Time and lane as one number, so that two events are compared without a branch: which of them is first is
// anybody's guess, and guessing costs a processor more than all the rest. Times are not negative, and doubles
// that are not negative are ordered as their bits are.
class Event {
 public:
  Event() = default;
  Event(double time, std::int32_t lane)
      : key_(Key{std::bit_cast<std::uint64_t>(time)} << 64 | static_cast<std::uint32_t>(lane)) {}

  double time() const noexcept { return std::bit_cast<double>(static_cast<std::uint64_t>(key_ >> 64)); }
  std::int32_t lane() const noexcept { return static_cast<std::int32_t>(static_cast<std::uint32_t>(key_)); }
  friend bool operator<(const Event& a, const Event& b) noexcept { return a.key_ < b.key_; }

 private:
  __extension__ typedef unsigned __int128 Key;
  Key key_ = 0;
};

// A heap in which every node has four children: half as deep as a binary one.
class EventQueue {
 public:
  void reserve(std::size_t size) { events_.reserve(size); }
  bool empty() const noexcept { return events_.empty(); }
  const Event& first() const { return events_.front(); }

  void push(const Event& event) {
    std::size_t at = events_.size();
    events_.push_back(event);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!(event < events_[parent])) break;
      events_[at] = events_[parent];
      at = parent;
    }
    events_[at] = event;
  }

  Event pop() {
    const Event first = events_.front();
    const Event last = events_.back();
    events_.pop_back();
    if (!events_.empty()) refill(last);
    return first;
  }

 private:
  // Moves the hole at the top down to a leaf, along the earliest children, and lets `event`, which was a leaf
  // and belongs far down, rise from there.
  void refill(const Event& event) {
    const std::size_t size = events_.size();
    Event* const events = events_.data();
    std::size_t at = 0;
    std::size_t child = 1;
    for (; child + 4 <= size; child = 4 * at + 1) {
      const std::size_t left = child + static_cast<std::size_t>(events[child + 1] < events[child]);
      const std::size_t right = child + 2 + static_cast<std::size_t>(events[child + 3] < events[child + 2]);
      const std::size_t least =
          left + (right - left) * static_cast<std::size_t>(events[right] < events[left]);
      events[at] = events[least];
      at = least;
    }
    if (child < size) {  // up to three children
      std::size_t least = child;
      for (std::size_t i = child + 1; i < size; ++i) {
        if (events[i] < events[least]) least = i;
      }
      events[at] = events[least];
      at = least;
    }
    for (; at > 0 && event < events[(at - 1) / 4]; at = (at - 1) / 4) events[at] = events[(at - 1) / 4];
    events[at] = event;
  }

  std::vector<Event> events_;
};

}  // namespace onesum::plan
