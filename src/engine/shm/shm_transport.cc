#include "engine/shm/shm_transport.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include <onesum/error.h>

namespace onesum::engine::shm {
namespace {

void wake_up(int descriptor) noexcept {
  const std::uint64_t one = 1;
  // It fails only where the counter is full, and then the descriptor is readable as it should be.
  [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof one);
}

[[noreturn]] void refuse(int rank, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "rank " + std::to_string(rank) + " cannot take part: " + why);
}

void check_peer(const Layout& layout, const Peer& peer) {
  const int rank = peer.segment.rank();
  if (peer.segment.layout().size() != layout.size() || peer.segment.layout().limits() != layout.limits())
    refuse(rank, "its segment has another layout");
  if (!peer.wake) refuse(rank, "there is no descriptor to wake it with");
}

}  // namespace

Fd make_wake_descriptor() {
  Fd descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor) throw Error(ErrorCode::kResourceExhausted, "cannot make an eventfd to sleep on");
  return descriptor;
}

ShmTransport::ShmTransport(Segment own, Fd wake, std::vector<Peer> peers)
    : own_(std::move(own)),
      wake_(std::move(wake)),
      peers_(std::move(peers)),
      phases_(own_.layout().limits().phases),
      lines_apart_(own_.layout().line_stride() / sizeof(Line)) {
  if (!wake_) refuse(own_.rank(), "it has no descriptor to sleep on");
  const auto size = static_cast<std::size_t>(own_.layout().size());
  ends_.resize(size * phases_.divisor());
  seen_.resize(size);
  open_.resize(phases_.divisor());
  for (Open& open : open_) open.is_noticed.reserve(size * limits().messages);
  for (unsigned phase = 0; phase < phases_.divisor(); ++phase) {
    Ends& common = ends(own_.rank(), phase);
    common.outgoing = own_.line(own_.rank(), phase, 0);
    common.outbox = own_.common_copy(phase);
  }
  for (const Peer& peer : peers_) {
    const int rank = peer.segment.rank();
    check_peer(own_.layout(), peer);
    if (rank == own_.rank() || seen(rank).counters != nullptr) refuse(rank, "it is there twice");
    seen(rank) = {.counters = &peer.segment.counters(), .wake = peer.wake.get()};
    for (unsigned phase = 0; phase < phases_.divisor(); ++phase) {
      ends(rank, phase) = {.outgoing = own_.line(rank, phase, 0),
                           .outbox = own_.copy(rank, phase),
                           .incoming = peer.segment.line(own_.rank(), phase, 0),
                           .inbox = peer.segment.copy(own_.rank(), phase),
                           .common_incoming = peer.segment.line(rank, phase, 0),
                           .common_inbox = peer.segment.common_copy(phase)};
    }
  }
}

std::span<const std::byte> ShmTransport::notes(int peer) const noexcept {
  for (const Peer& known : peers_) {
    if (known.segment.rank() == peer) return known.segment.notes();
  }
  return {};
}

NearBoxes ShmTransport::near_boxes(int /*peer*/) const noexcept {
  return {sizeof(Line::tiny), own_.layout().line_stride(), true, limits().room};
}

std::byte* ShmTransport::outbox(Box box, int peer, unsigned phase) noexcept {
  switch (box) {
    case Box::kPair:
      return ends(peer, phase).outbox;
    case Box::kTiny:
      return ends(peer, phase).outgoing->tiny;
    case Box::kCommon:
      return ends(own_.rank(), phase).outbox;
    case Box::kCommonTiny:
      return ends(own_.rank(), phase).outgoing->tiny;
  }
  return nullptr;
}

const std::byte* ShmTransport::inbox(Box box, int peer, unsigned phase) noexcept {
  switch (box) {
    case Box::kPair:
      return ends(peer, phase).inbox;
    case Box::kTiny:
      return ends(peer, phase).incoming->tiny;
    case Box::kCommon:
      return ends(peer, phase).common_inbox;
    case Box::kCommonTiny:
      return ends(peer, phase).common_incoming->tiny;
  }
  return nullptr;
}

void ShmTransport::begin(const Beat& beat, std::span<const Place> incoming) {
  Open& open = open_[phase_of(beat.number)];
  open.beat = beat.number;
  open.token = beat.token;
  open.has_stranger = false;
  open.incoming = incoming;
  open.has_noticed = false;
}

bool ShmTransport::may_send(const Beat& beat, int peer) noexcept {
  Seen& other = seen(peer);
  // Acquire: the peer has read the copy before this rank writes to it.
  if (!is_free(other, beat.number)) {
    other.finished = other.counters->finished.load(std::memory_order_acquire);
  }
  if (is_free(other, beat.number)) return true;
  other.refused = std::min(other.refused, beat.number);
  has_refused_ = true;
  return false;
}

int ShmTransport::reader_of_common(const Beat& beat) noexcept {
  if (beat.number < unread_below_) return -1;
  for (const Peer& peer : peers_) {
    if (!may_send(beat, peer.segment.rank())) return peer.segment.rank();
  }
  unread_below_ = beat.number + 1;
  return -1;
}

void ShmTransport::send(const Beat& beat, const Place& place) {
  const int row = is_common(place.box) ? own_.rank() : place.peer;
  Line& announced = line(ends(row, phase_of(beat.number)).outgoing, place.number);
  announced.token.store(beat.token, std::memory_order_relaxed);
  // Releases payload and token. Sequentially consistent, with the load of `sleep` and with arm() at the other
  // side: either the receiver's last look before it sleeps sees the line, or this look sees that it sleeps.
  announced.beat_after.store(beat.number + 1, std::memory_order_seq_cst);
  const auto wake_if_asleep = [](const Seen& other) {
    if (other.counters->sleep.load(std::memory_order_seq_cst) != Sleep::kAwake) wake_up(other.wake);
  };
  if (!is_common(place.box)) return wake_if_asleep(seen(place.peer));
  for (const Seen& other : seen_) {
    if (other.counters != nullptr) wake_if_asleep(other);
  }
}

Arrival ShmTransport::arrival(const Beat& beat, const Place& place) {
  const Line& looked_at = incoming_line(beat.number, place);
  // Acquire: payload and token were written before.
  const std::uint64_t found = looked_at.beat_after.load(std::memory_order_acquire);
  if (found <= beat.number) {
    const Open& open = open_[phase_of(beat.number)];
    return open.has_stranger && is_stranger(open, place.peer) ? Arrival::kMismatch : Arrival::kNotYet;
  }
  // Where ranks answer each other this is all that they ever look at: `finished` stays in its owner's cache.
  Seen& other = seen(place.peer);
  other.finished = std::max(other.finished, beat.settled);
  const bool is_alike =
      found == beat.number + 1 && looked_at.token.load(std::memory_order_relaxed) == beat.token;
  return is_alike ? Arrival::kHere : Arrival::kMismatch;
}

void ShmTransport::finish(const Beat& beat) {
  open_[phase_of(beat.number)].incoming = {};
  Counters& own = own_.counters();
  // Releases this rank's reads. Sequentially consistent for the same reason as in send().
  own.finished.store(beat.number + 1, std::memory_order_seq_cst);
  for (const Peer& peer : peers_) {
    const Sleep sleep = peer.segment.counters().sleep.load(std::memory_order_seq_cst);
    if (sleep == Sleep::kUntilMessageOrCopy) wake_up(peer.wake.get());
  }
}

bool ShmTransport::arm() {
  // Sequentially consistent, with the loads below: see send().
  own_.counters().sleep.store(has_refused_ ? Sleep::kUntilMessageOrCopy : Sleep::kUntilMessage,
                              std::memory_order_seq_cst);
  const bool has_message = notice_messages();
  const bool has_copy = notice_copies();
  return !has_message && !has_copy;
}

// Whether something that the peer has sent in the beat, to this rank or to all, is of another call. Where
// ranks are in different calls they need not look for each other's messages in the same lines.
bool ShmTransport::is_stranger(const Open& open, int peer) noexcept {
  const Ends& its = ends(peer, phase_of(open.beat));
  for (const Line* const first : {its.incoming, its.common_incoming}) {
    for (std::uint32_t number = 0; number < limits().messages; ++number) {
      const Line& looked_at = line(first, number);
      const std::uint64_t found = looked_at.beat_after.load(std::memory_order_seq_cst);
      if (found > open.beat && looked_at.token.load(std::memory_order_relaxed) != open.token) return true;
    }
  }
  return false;
}

// Whether a message of a beat under way is there that no arm() has seen, or can never come. Each is worth
// asking again once; one that nobody asks for must not keep the rank awake.
bool ShmTransport::notice_messages() noexcept {
  bool is_new = false;
  for (Open& open : open_) {
    if (!std::exchange(open.has_noticed, true)) open.is_noticed.assign(open.incoming.size(), false);
    for (std::size_t i = 0; i < open.incoming.size(); ++i) {
      if (open.is_noticed[i]) continue;
      const Place& place = open.incoming[i];
      const Line& looked_at = incoming_line(open.beat, place);
      if (looked_at.beat_after.load(std::memory_order_seq_cst) <= open.beat) {
        if (!is_stranger(open, place.peer)) continue;
        open.has_stranger = true;
      }
      open.is_noticed[i] = true;
      is_new = true;
    }
  }
  return is_new;
}

// Whether a copy is free that was refused since arm() last looked. Also where it was granted later: whoever
// was refused may not have asked again.
bool ShmTransport::notice_copies() noexcept {
  if (!has_refused_) return false;
  bool is_new = false;
  has_refused_ = false;
  for (Seen& other : seen_) {
    if (other.refused == kNone) continue;
    other.finished = other.counters->finished.load(std::memory_order_seq_cst);
    if (is_free(other, other.refused)) {
      other.refused = kNone;
      is_new = true;
    } else {
      has_refused_ = true;
    }
  }
  return is_new;
}

void ShmTransport::disarm() noexcept {
  // Relaxed: who sees it late wakes a rank that is awake.
  own_.counters().sleep.store(Sleep::kAwake, std::memory_order_relaxed);
  std::uint64_t events = 0;
  // It fails where nobody has written, which is as good.
  [[maybe_unused]] const ssize_t taken = read(wake_.get(), &events, sizeof events);
}

bool ShmTransport::quit() noexcept {
  for (Open& open : open_) open.incoming = {};
  return true;
}

}  // namespace onesum::engine::shm
