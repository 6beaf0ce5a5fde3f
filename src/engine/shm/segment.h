// The shared memory of a rank: what it sends to the ranks of its machine, and what they must know of it.
//
//   page 0      header: who, layout
//   page 1      notes, of which this engine knows nothing
//   then        `finished`, `sleep`
//               for each number of a message, for each phase, for each peer: the message's line
//               for each peer, for each phase: the copy of the outbox
//               for each phase: the copy of the common outbox
//
// The common outbox has the lines of the owner's own number.
//
// What a call of tiny messages needs lies in one page, with up to 15 ranks: where processes share a core,
// each of them has to find out anew where every page is.
//
// It is a memory file without a name, so nothing is left behind when the last process that has it dies. Its
// size is sealed, and so is writing: only the mapping that its owner made first can write. Peers read, also
// when the owner is dead; an owner that was given up for dead and comes back changes nobody else's memory.
// Pages are taken at their first use, so outboxes to ranks of other machines take none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/fd.h"
#include "engine/transport.h"

namespace onesum::engine::shm {

inline constexpr std::size_t kNotesBytes = 4096;

// Lies on a cache line of its own.
struct alignas(64) Line {
  // Number of the beat that the message belongs to, plus 1. Stored after payload and token, with release at
  // least; whoever acquires it may read both. Below the number that is waited for: not sent yet.
  std::atomic<std::uint64_t> beat_after{0};
  // Relaxed: ordered by beat_after.
  std::atomic<std::uint64_t> token{0};
  // Ordered by beat_after, too: a payload that has room here.
  std::byte tiny[48]{};
};

enum class Sleep : std::uint32_t {
  kAwake,
  kUntilMessage,
  kUntilMessageOrCopy,  // also until a peer has finished a beat
};

// Atomics of a rank, which its peers read.
struct Counters {
  // How many beats the rank has finished: it reads nothing of the beats below. Stored after the last read of
  // the beat, with release at least; a peer acquires it before it writes to the copy again.
  alignas(128) std::atomic<std::uint64_t> finished{0};
  // Sequentially consistent, as are the stores that a sleeper waits for: either the one who changes something
  // sees the sleeper, or the sleeper sees the change.
  alignas(128) std::atomic<Sleep> sleep{Sleep::kAwake};
};

// Where things lie in the segments of a transport; alike for all of them.
class Layout {
 public:
  // Throws invalid_argument for limits that no segment can have.
  Layout(int size, const Limits& limits);

  int size() const noexcept { return size_; }  // ranks
  const Limits& limits() const noexcept { return limits_; }
  std::size_t bytes() const noexcept { return bytes_; }  // of a segment

  // Offsets of what the owner sends to the peer, and to all of them.
  std::size_t line(int peer, unsigned phase, std::uint32_t number) const noexcept;
  std::size_t copy(int peer, unsigned phase) const noexcept;
  std::size_t common_copy(unsigned phase) const noexcept;
  // From the line of a message to that of the next one of the same peer and phase.
  std::size_t line_stride() const noexcept;

 private:
  int size_;
  Limits limits_;
  std::size_t copies_at_ = 0;
  std::size_t copy_stride_ = 0;
  std::size_t common_stride_ = 0;
  std::size_t bytes_ = 0;
};

class Mapping;

// Its owner's.
class Segment {
 public:
  // Throws resource_exhausted, and invalid_argument for a rank that the layout does not have, as below.
  Segment(int rank, const Layout& layout);

  int rank() const noexcept { return rank_; }
  const Layout& layout() const noexcept { return layout_; }
  // What peers need. Stays the segment's; whoever gets it can read, and nothing else.
  int descriptor() const noexcept { return descriptor_.get(); }

  Counters& counters() const noexcept;
  std::span<std::byte> notes() const noexcept;
  Line* line(int peer, unsigned phase, std::uint32_t number) const noexcept;
  std::byte* copy(int peer, unsigned phase) const noexcept;
  std::byte* common_copy(unsigned phase) const noexcept;

 private:
  friend class PeerSegment;

  int rank_;
  Layout layout_;
  Fd descriptor_;
  std::shared_ptr<Mapping> mapping_;
};

// Another rank's, read only.
class PeerSegment {
 public:
  // Of the rank `rank`, by the descriptor that it sent, which may be closed afterwards. Throws aborted,
  // naming the rank and what is wrong, where it is not the segment of that rank in this layout, or could
  // change its size.
  PeerSegment(int descriptor, int rank, const Layout& layout);
  // Of a rank that lives in this process: the owner's own mapping.
  explicit PeerSegment(const Segment& segment);

  int rank() const noexcept { return rank_; }
  const Layout& layout() const noexcept { return layout_; }

  const Counters& counters() const noexcept;
  std::span<const std::byte> notes() const noexcept;
  const Line* line(int peer, unsigned phase, std::uint32_t number) const noexcept;
  const std::byte* copy(int peer, unsigned phase) const noexcept;
  const std::byte* common_copy(unsigned phase) const noexcept;

 private:
  int rank_;
  Layout layout_;
  std::shared_ptr<const Mapping> mapping_;
};

}  // namespace onesum::engine::shm
