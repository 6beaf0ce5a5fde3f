// When a copy of an outbox to a peer may be written again, for transports over a network: how far the peer
// has got, and whether it has to be told how far this rank has.
//
// The count of finished beats travels in the headers of messages, so that ranks that exchange messages need
// nothing else. A peer that only sends is told in a message of its own, before it has no copy left.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace onesum::engine {

class Credits {
 public:
  explicit Credits(unsigned phases) : copies_(phases) {}

  // The peer has finished so many beats, as it says.
  void hear(std::uint64_t finished) noexcept { heard_ = std::max(heard_, finished); }

  std::uint64_t heard() const noexcept { return heard_; }

  // Whether something was sent in this beat already.
  bool is_used_in(std::uint64_t beat) const noexcept { return copy(beat).used == beat + 1; }
  // Whether the peer has read all that the copy of this beat held before.
  bool is_free_for(std::uint64_t beat) const noexcept { return heard_ >= copy(beat).used; }

  // A message of this beat is on its way to the peer; its header says `finished`.
  void note_sent(std::uint64_t beat, std::uint64_t finished) noexcept { copy(beat) = {beat + 1, finished}; }

  // The peer sends in this beat, and so will want to know when it is finished.
  void expect(std::uint64_t beat) noexcept { wanted_ = std::max(wanted_, beat + 1); }

  // This rank has finished the beat: whether the peer must be told by a message of its own. It reads what
  // this rank sent in a beat in the same beat, when it is told what was finished then; and what this rank
  // sends later, it may not read before it has sent.
  bool must_tell_after(std::uint64_t beat) noexcept {
    const std::uint64_t finished = beat + 1;
    const Copy& its = copy(beat);
    const bool has_sent = its.used == finished;
    if (has_sent) told_ = std::max(told_, its.told);
    const std::uint64_t may_lag = copies_.size() - 1;
    const std::uint64_t needed = has_sent ? finished - std::min(finished, may_lag) : finished;
    return std::min(wanted_, needed) > told_;
  }

  // It is told so by a message of its own.
  void note_told(std::uint64_t finished) noexcept { told_ = finished; }

 private:
  struct Copy {
    std::uint64_t used = 0;  // one more than the last beat that used it; 0: none
    std::uint64_t told = 0;  // what this rank had finished when it sent the last of its messages
  };

  Copy& copy(std::uint64_t beat) noexcept { return copies_[beat % copies_.size()]; }
  const Copy& copy(std::uint64_t beat) const noexcept { return copies_[beat % copies_.size()]; }

  std::uint64_t heard_ = 0;   // beats that the peer has finished, as far as it told
  std::uint64_t told_ = 0;    // beats that this rank has finished, as far as the peer knows for sure
  std::uint64_t wanted_ = 0;  // one more than the last beat in which the peer sends
  std::vector<Copy> copies_;
};

}  // namespace onesum::engine
