// The transport between worker processes of one machine.
//
// A rank writes its outboxes in its own segment, and peers read them there: a message is copied by nobody. A
// message's line says that it is there; `finished` says that a copy may be written again. Nothing on the fast
// path takes memory or a system call: a sender that sees its peer asleep writes to the peer's wake
// descriptor, and that is all the kernel hears of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/modulus.h"
#include "engine/shm/segment.h"
#include "engine/transport.h"

namespace onesum::engine::shm {

// A rank on the same machine, by what it sent.
struct Peer {
  PeerSegment segment;
  Fd wake;  // its eventfd
};

// An eventfd to sleep on, for this rank to keep and its peers to have copies of. Whoever else wants to wake
// the rank may write to it too. Throws resource_exhausted.
Fd make_wake_descriptor();

class ShmTransport final : public Transport {
 public:
  // Ranks without a peer live on other machines; nothing may be asked here about them. Throws
  // invalid_argument if the segments do not belong together.
  ShmTransport(Segment own, Fd wake, std::vector<Peer> peers);

  // Of this rank, for whoever writes them, and of its peers.
  std::span<std::byte> notes() const noexcept { return own_.notes(); }
  std::span<const std::byte> notes(int peer) const noexcept;

  const Limits& limits() const noexcept override { return own_.layout().limits(); }
  NearBoxes near_boxes(int peer) const noexcept override;
  std::byte* outbox(Box box, int peer, unsigned phase) noexcept override;
  const std::byte* inbox(Box box, int peer, unsigned phase) noexcept override;
  void begin(const Beat& beat, std::span<const Place> incoming) override;
  bool may_send(const Beat& beat, int peer) noexcept override;
  int reader_of_common(const Beat& beat) noexcept override;
  void send(const Beat& beat, const Place& place) override;
  Arrival arrival(const Beat& beat, const Place& place) override;
  void finish(const Beat& beat) override;
  // A message is where its receiver looks as soon as it is sent.
  bool is_flushed() noexcept override { return true; }
  bool progress() override { return !peers_.empty(); }  // who write whenever they like
  bool arm() override;
  void disarm() noexcept override;
  int event_fd() const noexcept override { return wake_.get(); }
  // Nobody else writes to any of this memory, and this rank does so by its own hand only.
  bool quit() noexcept override;

 private:
  // One phase of one peer, both directions.
  struct Ends {
    Line* outgoing = nullptr;  // of message 0; with the own rank: of the common ones, as is the outbox
    std::byte* outbox = nullptr;
    const Line* incoming = nullptr;
    const std::byte* inbox = nullptr;
    const Line* common_incoming = nullptr;
    const std::byte* common_inbox = nullptr;
  };
  struct Seen {  // of one peer
    const Counters* counters = nullptr;
    int wake = -1;
    std::uint64_t finished = 0;     // when last looked
    std::uint64_t refused = kNone;  // the first beat whose may_send was, and arm() has not seen its copy free
  };
  struct Open {  // a beat under way
    std::uint64_t beat = 0;
    std::uint64_t token = 0;
    bool has_stranger = false;  // arm() has found some rank's messages to be another call's
    std::span<const Place> incoming;
    bool has_noticed = false;      // arm() has looked,
    std::vector<bool> is_noticed;  // and has seen these of them
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Ends& ends(int peer, unsigned phase) noexcept {
    return ends_[static_cast<std::size_t>(peer) * phases_.divisor() + phase];
  }
  Seen& seen(int peer) noexcept { return seen_[static_cast<std::size_t>(peer)]; }
  unsigned phase_of(std::uint64_t beat) const noexcept { return static_cast<unsigned>(phases_.of(beat)); }
  // Whether the peer has read what the beat's copy had before.
  bool is_free(const Seen& peer, std::uint64_t beat) const noexcept {
    return peer.finished + phases_.divisor() > beat;
  }
  // Of the message's number, by that of message 0.
  template <class L>
  L& line(L* first, std::uint32_t number) const noexcept {
    return first[number * lines_apart_];
  }
  const Line& incoming_line(std::uint64_t beat, const Place& place) noexcept {
    const Ends& its = ends(place.peer, phase_of(beat));
    return line(is_common(place.box) ? its.common_incoming : its.incoming, place.number);
  }
  bool is_stranger(const Open& open, int peer) noexcept;
  bool notice_messages() noexcept;
  bool notice_copies() noexcept;

  Segment own_;
  Fd wake_;
  std::vector<Peer> peers_;
  Modulus phases_;
  std::size_t lines_apart_;
  std::vector<Ends> ends_;          // by rank and phase
  std::vector<Seen> seen_;          // by rank
  std::vector<Open> open_;          // by phase
  bool has_refused_ = false;        // some peer's
  std::uint64_t unread_below_ = 0;  // of beats below, nobody reads what the common copy had before
};

}  // namespace onesum::engine::shm
