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
  std::byte* outbox(int peer, unsigned phase) noexcept override { return box(peer, phase).outbox; }
  const std::byte* inbox(int peer, unsigned phase) noexcept override { return box(peer, phase).inbox; }
  void begin(const Beat& beat, std::span<const Place> incoming) override;
  bool may_send(const Beat& beat, int peer) noexcept override;
  void send(const Beat& beat, const Place& place) override;
  Arrival arrival(const Beat& beat, const Place& place) override;
  void finish(const Beat& beat) override;
  // A message is where its receiver looks as soon as it is sent.
  bool is_flushed() noexcept override { return true; }
  void progress() override {}
  bool arm() override;
  void disarm() noexcept override;
  int event_fd() const noexcept override { return wake_.get(); }
  // Nobody else writes to any of this memory, and this rank does so by its own hand only.
  bool quit() noexcept override;

 private:
  // One phase of one peer, both directions.
  struct Box {
    Line* outgoing = nullptr;
    std::byte* outbox = nullptr;
    const Line* incoming = nullptr;
    const std::byte* inbox = nullptr;
  };
  struct Seen {  // of one peer
    const Counters* counters = nullptr;
    int wake = -1;
    bool has_refused = false;    // a may_send, and arm() has not yet seen the copy free
    std::uint64_t finished = 0;  // when last looked
  };

  Box& box(int peer, unsigned phase) noexcept {
    return boxes_[static_cast<std::size_t>(peer) * phases_ + phase];
  }
  Seen& seen(int peer) noexcept { return seen_[static_cast<std::size_t>(peer)]; }
  bool is_free(const Seen& peer) const noexcept { return peer.finished + phases_ > beat_; }
  bool notice_messages() noexcept;
  bool notice_copies() noexcept;

  Segment own_;
  Fd wake_;
  std::vector<Peer> peers_;
  unsigned phases_;
  std::vector<Box> boxes_;  // by rank and phase
  std::vector<Seen> seen_;  // by rank
  std::vector<std::uint64_t>
      noticed_;  // by rank and number: the last message that arm() has seen, as in its line

  std::uint64_t beat_ = 0;
  unsigned phase_ = 0;
  std::span<const Place> incoming_;
  bool has_refused_ = false;  // some peer's
};

}  // namespace onesum::engine::shm
