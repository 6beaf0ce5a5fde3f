#include "cluster/links.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <onesum/error.h>

#include "base/bytes.h"
#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

using std::chrono::milliseconds;

// Kinds of messages of a link itself, which are of group 0.
constexpr GroupId kNoGroup = 0;
constexpr std::uint16_t kAlive = 128;
constexpr std::uint16_t kGivenUp = 129;

constexpr milliseconds kGoodbyePatience{200};
constexpr milliseconds kMostInterval{500};
// Messages of one worker for groups that this one has not heard of yet. A group is entered by all, with few
// short messages before the first call; of one that this worker never comes to they stay.
constexpr std::size_t kMostEarly = std::size_t{1} << 16;

Fd open_pidfd(const Connection& connection) {
  const auto credentials = peer_credentials(connection.socket());
  if (!credentials || credentials->process <= 0) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, credentials->process, 0)));
}

void drain(int eventfd) noexcept {
  std::uint64_t count = 0;
  (void)!::read(eventfd, &count, sizeof count);
}

// A frame's payload begins with its group.
std::vector<std::byte> with_group(GroupId group, std::span<const std::byte> payload) {
  ByteWriter out;
  out.number(group);
  out.raw(payload);
  return out.take();
}

GroupId take_group(Message& message) {
  ByteReader in(message.payload);
  const auto group = in.number<GroupId>();
  message.payload.erase(message.payload.begin(), message.payload.begin() + sizeof(GroupId));
  return group;
}

}  // namespace

Links::Links(int seat, std::vector<Connection> connections, milliseconds silence)
    : seat_(seat),
      silence_(silence),
      interval_(std::clamp<milliseconds>(silence / 10, milliseconds{10}, kMostInterval)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(connections.size()) {
  if (!wake_) throw Error(ErrorCode::kResourceExhausted, "no descriptor for an eventfd is left");
  for (std::size_t s = 0; s < connections.size(); ++s) {
    Peer& peer = peers_[s];
    peer.is_self = static_cast<int>(s) == seat_;
    if (peer.is_self) continue;
    peer.connection = std::move(connections[s]);
    peer.process_ended = open_pidfd(peer.connection);
    peer.heard = now();
  }
  thread_ = std::thread([this] { run(); });
}

Links::~Links() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  wake();
  thread_.join();
}

bool Links::carries_descriptors(int seat) const {
  const auto held = lock();
  return peer(seat).connection.is_unix();
}

std::string Links::host_towards(int seat) const {
  const auto held = lock();
  return place_of(local_address(peer(seat).connection.socket())).host;
}

void Links::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);  // full: it is awake already
}

void Links::add(GroupId group, Listener& listener) {
  listeners_[group] = &listener;
  has_new_listener_ = true;
  wake();
}

void Links::remove(GroupId group) {
  listeners_.erase(group);
  removed_.insert(group);
}

void Links::send(int seat, GroupId group, std::uint16_t kind, std::span<const std::byte> payload,
                 std::span<const int> descriptors) {
  Peer& to = peer(seat);
  if (!is_alive(to)) return;
  to.connection.queue(kind, with_group(group, payload), descriptors);
  bool is_sent = false;
  try {
    is_sent = to.connection.flush();
  } catch (const Error&) {
    is_sent = false;  // the thread will meet the same error, and is the one to say so
  }
  if (!is_sent) wake();
}

bool Links::is_flushed(int seat) const {
  return !is_alive(peer(seat)) || !peer(seat).connection.has_unsent();
}

void Links::run() {
  std::unique_lock lock(mutex_);
  Clock::time_point next_beat = now();
  Clock::time_point give_up = Clock::time_point::max();
  for (;;) {
    if (is_closing_ && give_up == Clock::time_point::max()) give_up = now() + kGoodbyePatience;
    if (now() >= next_beat) {
      check_silence(now() - next_beat);
      beat();
      next_beat = now() + interval_;
    }
    flush_all();
    if (is_closing_ && (now() >= give_up || !has_unsent())) break;
    wait_and_read(lock, std::min(next_beat, give_up));
  }
}

void Links::beat() {
  for (int s = 0; s < static_cast<int>(peers_.size()); ++s) send(s, kNoGroup, kAlive, {});
  for (const auto& [group, listener] : listeners_) listener->beat();
}

// A thread that was itself late (a stopped process, a machine that slept) has no right to accuse others.
void Links::check_silence(Clock::duration late) {
  for (int s = 0; s < static_cast<int>(peers_.size()); ++s) {
    Peer& other = peer(s);
    if (!is_alive(other)) continue;
    if (late > interval_) other.heard += late;
    if (now() - other.heard <= silence_) continue;
    lose(s, {Loss::Kind::kSilent, fmt::format("nothing was heard of it for {} ms", silence_.count())});
  }
}

void Links::flush_all() {
  for (int s = 0; s < static_cast<int>(peers_.size()); ++s) {
    if (is_alive(peer(s)) || is_parting(peer(s))) flush(s);
  }
}

void Links::flush(int seat) {
  Peer& to = peer(seat);
  try {
    to.connection.flush();
  } catch (const std::exception& error) {
    if (to.loss) {
      to.connection.close();
    } else {
      read_from(seat);  // its last words may have come before
      lose(seat, {Loss::Kind::kBroken, error.what()});
    }
  }
}

bool Links::has_unsent() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.connection.has_unsent(); });
}

void Links::wait_and_read(std::unique_lock<std::mutex>& lock, Clock::time_point until) {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  std::vector<std::pair<int, bool>> meanings{{seat_, false}};  // seat, and whether it is the pidfd
  for (int s = 0; s < static_cast<int>(peers_.size()); ++s) {
    const Peer& other = peer(s);
    if (is_parting(other)) {
      polled.push_back({other.connection.fd(), POLLOUT, 0});
      meanings.emplace_back(s, false);
    }
    if (!is_alive(other)) continue;
    const short events = other.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    polled.push_back({other.connection.fd(), events, 0});
    meanings.emplace_back(s, false);
    if (!other.process_ended) continue;
    polled.push_back({other.process_ended.get(), POLLIN, 0});
    meanings.emplace_back(s, true);
  }
  lock.unlock();
  wait_for(polled, until);
  lock.lock();
  was_asleep_ = now() > until + silence_ / 2;
  if (std::exchange(has_new_listener_, false)) hear_early();
  if (polled.front().revents != 0) drain(wake_.get());
  for (std::size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    const auto [seat, is_end_of_process] = meanings[i];
    if (is_end_of_process) {
      see_end_of_process(seat);
    } else {
      read_from(seat);
    }
  }
}

void Links::read_from(int seat) {
  Peer& from = peer(seat);
  if (is_alive(from)) from.heard = now();  // also if it is only part of a message
  try {
    while (is_alive(from)) {
      std::optional<Message> message = from.connection.try_receive();
      if (!message) break;
      take(seat, std::move(*message));
    }
  } catch (const std::exception& error) {
    const bool is_dead = from.connection.has_orderly_end() && !was_asleep_;
    lose(seat, {is_dead ? Loss::Kind::kEnded : Loss::Kind::kBroken, error.what()});
  }
}

// Its last messages are in the socket.
void Links::see_end_of_process(int seat) {
  read_from(seat);
  lose(seat, {was_asleep_ ? Loss::Kind::kBroken : Loss::Kind::kEnded, "its process has ended"});
}

void Links::take(int seat, Message&& message) {
  const GroupId group = take_group(message);
  if (group != kNoGroup) {
    hear(seat, group, std::move(message));
    return;
  }
  if (message.kind == kAlive) return;
  if (message.kind != kGivenUp)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("sent a message of unknown kind {}", message.kind));
  const std::string why(reinterpret_cast<const char*>(message.payload.data()), message.payload.size());
  lose(seat, {Loss::Kind::kGaveUp, "has given this worker up: " + why});
}

void Links::hear(int seat, GroupId group, Message&& message) {
  const auto listener = listeners_.find(group);
  if (listener != listeners_.end()) {
    listener->second->hear(seat, std::move(message));
  } else if (!removed_.contains(group)) {
    if (++peer(seat).num_early > kMostEarly) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("sent more than {} messages for groups that this worker is not in", kMostEarly));
    }
    early_.push_back({group, seat, std::move(message)});
  }
}

void Links::hear_early() {
  for (Early& early : std::exchange(early_, {})) {
    --peer(early.seat).num_early;
    try {
      hear(early.seat, early.group, std::move(early.message));
    } catch (const std::exception& error) {
      lose(early.seat, {Loss::Kind::kBroken, error.what()});
    }
  }
}

void Links::lose(int seat, Loss loss) {
  Peer& lost = peer(seat);
  if (!is_alive(lost)) return;
  if (loss.kind == Loss::Kind::kSilent || loss.kind == Loss::Kind::kBroken) {
    // It may live. It must learn that it does not belong any more, and not take the end of the stream for a
    // death: the connection stays open.
    send(seat, kNoGroup, kGivenUp, std::as_bytes(std::span(loss.how)));
  } else {
    lost.connection.close();
  }
  lost.process_ended.reset();
  lost.loss = std::move(loss);
  for (const auto& [group, listener] : listeners_) listener->lose(seat, *lost.loss);
  notify();
}

}  // namespace onesum::cluster
