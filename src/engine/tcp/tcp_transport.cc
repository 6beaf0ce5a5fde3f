#include "engine/tcp/tcp_transport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <onesum/error.h>

#include "engine/checksum.h"
#include "engine/native.h"

namespace onesum::engine::tcp {
namespace {

// Where so few are awaited, each is asked by itself, which is one call of the system less if it has
// something.
constexpr std::size_t kFew = 4;
constexpr unsigned kMostPhases = 64;
// Others hear of an end by better ways. (The death of a worker is known in milliseconds.)
constexpr std::chrono::seconds kPatience{3};
// For what was sent to reach the other machine, before the connection is closed.
constexpr std::chrono::milliseconds kFarewell{900};

TcpOptions checked(const TcpOptions& options, std::size_t sockets) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, "TCP transport: " + what);
  };
  const Limits& limits = options.limits;
  if (options.rank < 0 || options.rank >= options.size)
    refuse(fmt::format("rank {} of {}", options.rank, options.size));
  if (sockets != static_cast<std::size_t>(options.size))
    refuse(fmt::format("{} sockets for {} ranks", sockets, options.size));
  if (limits.phases < 1 || limits.phases > kMostPhases)
    refuse(fmt::format("{} copies of an outbox; expected 1 to {}", limits.phases, kMostPhases));
  if (limits.messages < 1 || limits.bytes < kMessageHeader)
    refuse(fmt::format("{} messages in {} bytes; expected at least 1 and {}", limits.messages, limits.bytes,
                       kMessageHeader));
  if (options.checksums && !has_checksums()) {
    throw Error(ErrorCode::kUnimplemented,
                "checksums need ISA-L, which this build of onesum was made without; install libisal-dev "
                "(Debian) and build it again");
  }
  return options;
}

Fd make_events() {
  Fd events(epoll_create1(EPOLL_CLOEXEC));
  if (events) return events;
  throw Error(ErrorCode::kResourceExhausted,
              fmt::format("cannot wait for connections: {}", std::strerror(errno)));
}

// Whatever its own is.
std::uint32_t checksum_of(Header header) noexcept {
  header.checksum = 0;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&header, 1)));
  return checksum.value();
}

std::uint32_t checksum_of(std::span<const Stretch> payload) noexcept {
  Checksum checksum;
  for (const Stretch& stretch : payload) checksum.add(stretch);
  return checksum.value();
}

std::size_t bytes_of(std::span<const Stretch> memory) noexcept {
  std::size_t bytes = 0;
  for (const Stretch& stretch : memory) bytes += stretch.size();
  return bytes;
}

void require_bytes(const Place& place, std::span<const Stretch> memory) {
  if (bytes_of(memory) == place.bytes) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("TCP transport: {} bytes lent for a message of {}", bytes_of(memory), place.bytes));
}

}  // namespace

TcpTransport::Peer::Peer(TcpTransport& transport, int number, Fd socket)
    : owner(&transport),
      rank(number),
      credits(transport.options_.limits.phases),
      said(transport.options_.limits.phases),
      incoming(transport.options_.limits.phases),
      outgoing(transport.options_.limits.phases),
      unsent(transport.options_.limits.phases) {
  if (socket) stream = Stream(std::move(socket));
  news.unsent = &unsent_news;
}

TcpTransport::TcpTransport(const TcpOptions& options, std::vector<Fd> sockets)
    : options_(checked(options, sockets.size())),
      boxes_(options.size, options.limits),
      events_(make_events()) {
  for (int rank = 0; rank < options_.size; ++rank) {
    Fd& socket = sockets[static_cast<std::size_t>(rank)];
    if (socket && rank != options_.rank) reached_.push_back(rank);
    peers_.emplace_back(*this, rank, rank == options_.rank ? Fd() : std::move(socket));
  }
  polled_.reserve(reached_.size());
}

// Who begins to wait only now has not waited for long.
void TcpTransport::Peer::await(std::size_t messages, std::uint64_t copies) noexcept {
  if (lost && !is_awaited()) lost = now();
  expected = messages;
  refused = copies;
}

bool TcpTransport::damage_next(int rank) noexcept {
  peer(rank).damages_next = peer(rank).stream.is_open();
  return peer(rank).damages_next;
}

void TcpTransport::require_place(const Place& place) const {
  const Limits& limits = options_.limits;
  const bool is_right = place.box == Box::kPair && place.peer >= 0 && place.peer < options_.size &&
                        place.number < limits.messages && place.offset >= kMessageHeader &&
                        place.offset <= limits.bytes && place.bytes <= limits.bytes - place.offset;
  if (is_right) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("TCP transport: message {} of rank {}, {} bytes at {}, exceeds the limits",
                          place.number, place.peer, place.bytes, place.offset));
}

TcpTransport::Incoming& TcpTransport::incoming_of(Peer& from, std::uint64_t beat, std::uint32_t number) {
  std::deque<Incoming>& all = from.incoming[phase_of(beat)];
  while (all.size() <= number) all.emplace_back();
  return all[number];
}

void TcpTransport::begin(const Beat& beat, std::span<const Place> incoming) {
  begun_ = beat.number + 1;
  for (const Place& place : incoming) {
    require_place(place);
    Peer& from = peer(place.peer);
    Incoming& message = incoming_of(from, beat.number, place.number);
    message.expected = beat.number + 1;
    if (message.arrived != message.expected) from.await(from.expected + 1, from.refused);
    from.credits.expect(beat.number);
  }
}

// ---- sending ----

bool TcpTransport::may_send(const Beat& beat, int rank) noexcept {
  Peer& to = peer(rank);
  const unsigned phase = phase_of(beat.number);
  const bool may =
      to.credits.is_used_in(beat.number) || (to.unsent[phase] == 0 && to.credits.is_free_for(beat.number));
  const std::uint64_t bit = std::uint64_t{1} << phase;
  to.await(to.expected, may ? to.refused & ~bit : to.refused | bit);
  return may;
}

Outgoing& TcpTransport::outgoing_of(Peer& to, const Beat& beat, const Place& place) {
  std::deque<Outgoing>& all = to.outgoing[phase_of(beat.number)];
  while (all.size() <= place.number) all.emplace_back().unsent = &to.unsent[phase_of(beat.number)];
  Outgoing& message = all[place.number];
  message.parts.clear();
  return message;
}

// Before the payload's room in the outbox, wherever the payload is.
std::byte* TcpTransport::write_header(const Beat& beat, const Place& place,
                                      std::span<const Stretch> payload) {
  Header header;
  header.beat = beat.number;
  header.token = beat.token;
  header.bytes = place.bytes;
  header.offset = place.offset;
  header.finished = finished_;
  header.number = place.number;
  if (options_.checksums) {
    header.payload_checksum = checksum_of(payload);
    header.checksum = checksum_of(header);
  }
  std::byte* const memory = boxes_.outbox(place.peer, phase_of(beat.number)) + place.offset - kMessageHeader;
  std::memcpy(memory, &header, sizeof header);
  peer(place.peer).credits.note_sent(beat.number, finished_);
  return memory;
}

void TcpTransport::send(const Beat& beat, const Place& place) {
  require_place(place);
  Peer& to = peer(place.peer);
  const Stretch payload(boxes_.outbox(place.peer, phase_of(beat.number)) + place.offset, place.bytes);
  const std::byte* header = write_header(beat, place, {&payload, 1});
  if (to.damages_next && place.bytes > 0) {
    to.damages_next = false;
    payload[place.bytes / 2] ^= std::byte{0x10};
  }
  Outgoing& message = outgoing_of(to, beat, place);
  message.parts.add(header, kMessageHeader + place.bytes);
  to.stream.send(message);
}

// A drill changes what is in the outbox, and nothing else.
void TcpTransport::send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) {
  require_place(place);
  require_bytes(place, payload);
  Peer& to = peer(place.peer);
  if (to.damages_next && place.bytes > 0) {
    std::byte* box = boxes_.outbox(place.peer, phase_of(beat.number)) + place.offset;
    for (const Stretch& stretch : payload) box = std::ranges::copy(stretch, box).out;
    return send(beat, place);
  }
  Outgoing& message = outgoing_of(to, beat, place);
  message.parts.add(write_header(beat, place, payload), kMessageHeader);
  for (const Stretch& stretch : payload) message.parts.add(stretch.data(), stretch.size());
  to.stream.send(message);
}

bool TcpTransport::is_taken(const Beat& beat) noexcept {
  return std::ranges::all_of(reached_,
                             [&](int rank) { return peer(rank).unsent[phase_of(beat.number)] == 0; });
}

bool TcpTransport::is_flushed() noexcept {
  return std::ranges::none_of(reached_, [&](int rank) { return peer(rank).stream.has_unsent(); });
}

void TcpTransport::send_news(Peer& to) {
  to.has_more_news = to.unsent_news > 0;
  if (to.has_more_news) return;
  to.news_header.kind = Kind::kNews;
  to.news_header.finished = finished_;
  if (options_.checksums) to.news_header.checksum = checksum_of(to.news_header);
  to.news.parts.clear();
  to.news.parts.add(&to.news_header, sizeof to.news_header);
  to.credits.note_told(finished_);
  to.stream.send(to.news);
}

void TcpTransport::finish(const Beat& beat) {
  finished_ = beat.number + 1;
  for (const int rank : reached_) {
    if (peer(rank).credits.must_tell_after(beat.number)) send_news(peer(rank));
  }
}

// ---- receiving ----

// The copy of the inbox is free: the sender has heard so. It may be many beats ahead, if it had nothing to
// send.
bool TcpTransport::Peer::begin(const Header& header, Parts& payload) {
  if (owner->options_.checksums && checksum_of(header) != header.checksum) return false;
  if (header.kind == Kind::kNews) return header.bytes == 0;
  const Limits& limits = owner->options_.limits;
  const bool is_right = header.kind == Kind::kMessage && header.number < limits.messages &&
                        header.offset >= kMessageHeader && header.offset <= limits.bytes &&
                        header.bytes <= limits.bytes - header.offset;
  if (!is_right) return false;
  is_stray = header.beat < owner->finished_;
  if (is_stray) {
    nowhere.resize(header.bytes);
    payload.add(nowhere.data(), header.bytes);
    return true;
  }
  const unsigned phase = owner->phase_of(header.beat);
  said[phase] = {header.beat + 1, header.token};
  Incoming& message = owner->incoming_of(*this, header.beat, header.number);
  message.header = header;
  message.verdict.reset();
  message.is_in_box = message.placed != header.beat + 1 || bytes_of(message.memory) != header.bytes;
  if (message.is_in_box) {
    payload.add(owner->boxes_.inbox(rank, phase) + header.offset, header.bytes);
  } else {
    for (const Stretch& stretch : message.memory) payload.add(stretch.data(), stretch.size());
  }
  return true;
}

void TcpTransport::Peer::end(const Header& header) {
  credits.hear(header.finished);
  if (header.kind == Kind::kNews || is_stray) return;
  Incoming& message = owner->incoming_of(*this, header.beat, header.number);
  message.arrived = header.beat + 1;
  if (message.expected == message.arrived) --expected;
  owner->move_to_memory(*this, message);
}

void TcpTransport::receive_into(const Beat& beat, const Place& place, std::span<const Stretch> payload) {
  require_place(place);
  require_bytes(place, payload);
  Peer& from = peer(place.peer);
  Incoming& message = incoming_of(from, beat.number, place.number);
  message.placed = beat.number + 1;
  message.memory.assign(payload.begin(), payload.end());
  if (message.arrived == message.placed) move_to_memory(from, message);
}

// What came before anybody had said where it belongs.
void TcpTransport::move_to_memory(const Peer& from, const Incoming& message) {
  if (!message.is_in_box || message.placed != message.arrived) return;
  if (bytes_of(message.memory) != message.header.bytes) return;  // of another call
  const std::byte* next = boxes_.inbox(from.rank, phase_of(message.header.beat)) + message.header.offset;
  for (const Stretch& stretch : message.memory) {
    std::copy_n(next, stretch.size(), stretch.data());
    next += stretch.size();
  }
}

Arrival TcpTransport::arrival(const Beat& beat, const Place& place) {
  Peer& from = peer(place.peer);
  Incoming& message = incoming_of(from, beat.number, place.number);
  if (message.arrived == beat.number + 1) {
    if (!message.verdict) message.verdict = judge(beat, place, message);
    return *message.verdict;
  }
  // Whoever is in another call may never send what is waited for, and whoever is so far ahead does not.
  const Said& said = from.said[phase_of(beat.number)];
  const bool is_past = said.beat > beat.number + 1;
  if (is_past || (said.beat == beat.number + 1 && said.token != beat.token)) return Arrival::kMismatch;
  return from.stream.is_corrupt() ? Arrival::kCorrupt : Arrival::kNotYet;
}

Arrival TcpTransport::judge(const Beat& beat, const Place& place, Incoming& message) {
  const Header& header = message.header;
  if (options_.checksums) {
    // Of another call it may be in the box, whatever this call says.
    const bool is_placed = place.is_lent && bytes_of(message.memory) == header.bytes;
    const Stretch whole(boxes_.inbox(place.peer, phase_of(header.beat)) + header.offset, header.bytes);
    const std::span<const Stretch> payload =
        is_placed ? std::span<const Stretch>(message.memory) : std::span(&whole, 1);
    if (checksum_of(payload) != header.payload_checksum) return Arrival::kCorrupt;
  }
  if (header.token != beat.token) return Arrival::kMismatch;
  if (header.bytes != place.bytes || header.offset != place.offset) return Arrival::kCorrupt;
  peer(place.peer).credits.hear(beat.settled);
  return Arrival::kHere;
}

// ---- progress ----

bool TcpTransport::push(Peer& to) {
  const bool has_moved = to.stream.push();
  if (to.has_more_news && to.unsent_news == 0) send_news(to);
  return has_moved;
}

bool TcpTransport::pull(Peer& from) {
  const bool has_come = from.stream.pull(from);
  if (!from.stream.is_open() && !from.lost) {
    from.lost = now();
    has_lost_ = true;
  }
  return has_come;
}

bool TcpTransport::progress() {
  bool has_moved = false;
  std::size_t awaited = 0;
  for (const int rank : reached_) {
    Peer& its = peer(rank);
    if (its.stream.has_unsent() || its.has_more_news) has_moved = push(its) || has_moved;
    awaited += its.is_awaited() ? 1 : 0;
  }
  if (awaited > kFew) {
    has_moved = pull_all() || has_moved;
  } else if (awaited > 0) {
    for (const int rank : reached_) {
      if (peer(rank).is_awaited()) has_moved = pull(peer(rank)) || has_moved;
    }
  }
  if (has_lost_) check_lost();
  return has_moved;
}

// Whatever there is, also what nobody waits for yet.
bool TcpTransport::pull_all() {
  polled_.clear();
  for (const int rank : reached_) {
    const Stream& stream = peer(rank).stream;
    polled_.push_back({stream.is_open() ? stream.fd() : -1, POLLIN, 0});
  }
  if (::poll(polled_.data(), polled_.size(), 0) <= 0) return false;
  bool has_come = false;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) has_come = pull(peer(reached_[i])) || has_come;
  }
  return has_come;
}

void TcpTransport::check_lost() const {
  for (const int rank : reached_) {
    const Peer& its = peers_[static_cast<std::size_t>(rank)];
    if (!its.lost || !its.is_awaited() || now() < *its.lost + kPatience) continue;
    throw PeerLost(
        fmt::format("the connection for messages to rank {} has ended ({}), though nobody has said "
                    "that this rank has; does something between the machines cut connections?",
                    rank, its.stream.failure()));
  }
}

// ---- sleeping ----

// Connections are watched during a sleep only: whoever sends to one that is has to tell who might be asleep.
bool TcpTransport::arm() {
  for (const int rank : reached_) {
    const Stream& stream = peer(rank).stream;
    if (!stream.is_open()) continue;
    epoll_event event{};
    event.events = EPOLLIN | (stream.has_unsent() ? EPOLLOUT : 0U);
    epoll_ctl(events_.get(), EPOLL_CTL_ADD, stream.fd(), &event);
  }
  return !pull_all();
}

void TcpTransport::disarm() noexcept {
  for (const int rank : reached_) {
    epoll_ctl(events_.get(), EPOLL_CTL_DEL, peer(rank).stream.fd(), nullptr);
  }
}

// ---- the end ----

bool TcpTransport::quit() noexcept {
  if (std::exchange(has_quit_, true)) return true;
  if (begun_ == finished_) let_arrive();
  for (const int rank : reached_) peer(rank).stream.close();
  return true;
}

void TcpTransport::let_arrive() noexcept {
  const Clock::time_point deadline = now() + kFarewell;
  for (;;) {
    for (const int rank : reached_) peer(rank).stream.drain();
    const auto has_arrived = [&](int rank) { return peer(rank).stream.has_arrived(); };
    if (std::ranges::all_of(reached_, has_arrived) || now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace onesum::engine::tcp
