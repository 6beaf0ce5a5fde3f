#include "cluster/lead.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

#include "cluster/agreement.h"
#include "cluster/hello.h"
#include "cluster/reception.h"
#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;

// How long a socket that is in use is tried again: whoever had it before may be about to end.
constexpr Clock::duration kPatienceForAddress = 5s;
constexpr Clock::duration kAddressPause = 50ms;
// How long worker 0 stays after a failure: for those that are there to read it, and for those that come late.
constexpr Clock::duration kFarewell = 1s;
constexpr Clock::duration kLinger = 3s;

Made listen_once(const MeetingPlace& place) {
  if (place.is_unix()) return listen_at(unix_address(place.unix_name));
  if (place.host == "localhost") {
    Made made = listen_at(*ip_address("127.0.0.1", place.port));
    return made.error == EADDRNOTAVAIL ? listen_at(*ip_address("::1", place.port)) : std::move(made);
  }
  // A name may stand for an address that only others see, or for a loopback one on this very machine.
  const auto address = ip_address(place.host, place.port);
  if (!address) return listen_everywhere(place.port);
  Made made = listen_at(*address);
  const bool is_elsewhere = made.error == EADDRNOTAVAIL && !place.is_on_this_machine();
  return is_elsewhere ? listen_everywhere(place.port) : std::move(made);
}

Fd listener_at(const MeetingPlace& place, Clock::time_point deadline) {
  const Clock::time_point last_try = std::min(deadline, now() + kPatienceForAddress);
  for (;;) {
    Made made = listen_once(place);
    if (made.socket) return std::move(made.socket);
    if (made.error != EADDRINUSE || now() >= last_try) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("rank 0 cannot listen at {}: {}{}", to_string(place), std::strerror(made.error),
                              made.error == EADDRINUSE ? "; another process has it" : ""));
    }
    std::vector<pollfd> nobody;
    wait_for(nobody, now() + kAddressPause);
  }
}

bool is_flushed_or_lost(Connection& connection) {
  try {
    return connection.flush();
  } catch (const Error&) {
    return true;
  }
}

class Leader {
 public:
  explicit Leader(const Meeting& meeting);
  Met run();

 private:
  struct Guest {
    Connection connection;
    Connection local;  // over a Unix socket, where the meeting is over TCP and the machine is the same
    Card card;
    bool is_ready = false;
  };

  void gather();
  void hand_out_cards();
  void await_ready();
  void let_go();
  Met result();

  void wait(Clock::time_point deadline);
  void serve_reception();
  void receive_arrivals();
  void admit(Arrival arrival);
  void take_local(Arrival arrival);
  void hear_guests();
  void hear(Guest& guest, const Message& message);
  bool expects_local(const Guest& guest) const;
  bool is_finished(const Guest& guest) const;

  template <class Predicate>
  std::vector<int> ranks_where(const Predicate& holds) const;
  std::string period() const { return in_seconds(deadline_ - start_); }

  [[noreturn]] void refuse(ErrorCode code, const std::string& text);
  void dismiss(const std::vector<std::byte>& refusal, Clock::duration patience);
  void collect_latecomers();

  const Meeting& meeting_;
  Clock::time_point start_ = now();
  Clock::time_point deadline_;  // the earliest of all that have come
  Passport passport_;
  Hello own_;
  Ticket ticket_{};
  Reception reception_;
  std::vector<std::optional<Guest>> guests_;  // by rank; never that of worker 0
  std::size_t num_present_ = 1;
  std::deque<Arrival> arrivals_;     // not looked at yet
  std::vector<Connection> refused_;  // came, and are to be told that the meeting failed
};

Leader::Leader(const Meeting& meeting)
    : meeting_(meeting),
      deadline_(meeting.deadline),
      passport_{meeting.secret, meeting.job},
      own_(hello_of(meeting)),
      reception_(passport_, "rank 0"),
      guests_(static_cast<std::size_t>(meeting.size)) {
  fill_with_random(ticket_);
  reception_.listen(listener_at(meeting.place, deadline_));
  const std::uint16_t port = place_of(local_address(reception_.listeners().front())).port;
  if (!meeting.place.is_unix() && !meeting.machine.empty()) {
    own_.card.unix_name = add_unix_listener(reception_);
  }
  if (!meeting.publish) return;
  MeetingPlace place = meeting.place;
  if (!place.is_unix()) place.port = port;
  const bool is_everywhere = !place.is_unix() && place.host.empty();
  meeting.publish(is_everywhere ? to_string(addresses_of_this_machine(port)) : to_string(place));
}

Met Leader::run() {
  gather();
  hand_out_cards();
  await_ready();
  let_go();
  return result();
}

template <class Predicate>
std::vector<int> Leader::ranks_where(const Predicate& holds) const {
  std::vector<int> ranks;
  for (int rank = 1; rank < meeting_.size; ++rank) {
    if (holds(guests_[static_cast<std::size_t>(rank)])) ranks.push_back(rank);
  }
  return ranks;
}

void Leader::gather() {
  while (num_present_ < guests_.size()) {
    wait(deadline_);
    receive_arrivals();
    hear_guests();
    if (num_present_ < guests_.size() && now() >= deadline_) {
      const auto missing = ranks_where([](const auto& guest) { return !guest; });
      refuse(ErrorCode::kDeadlineExceeded,
             fmt::format("{} of {} workers came within {}; missing: {}", num_present_, guests_.size(),
                         period(), listed_ranks(missing)));
    }
  }
}

void Leader::hand_out_cards() {
  std::vector<std::vector<std::byte>> cards = {encode(CardOf{0, own_.card})};
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
    cards.push_back(encode(CardOf{static_cast<std::uint32_t>(rank), guests_[rank]->card}));
  }
  for (auto& guest : guests_) {
    if (!guest) continue;
    guest->connection.queue(number_of(Kind::kWelcome), encode(ticket_));
    for (const auto& card : cards) guest->connection.queue(number_of(Kind::kCard), card);
  }
}

bool Leader::expects_local(const Guest& guest) const {
  return !meeting_.place.is_unix() && are_on_one_machine(guest.card, own_.card);
}

bool Leader::is_finished(const Guest& guest) const {
  return guest.is_ready && (!expects_local(guest) || guest.local.is_open());
}

void Leader::await_ready() {
  for (;;) {
    const auto unfinished = ranks_where([&](const auto& guest) { return !is_finished(*guest); });
    if (unfinished.empty()) return;
    if (now() >= deadline_) {
      refuse(ErrorCode::kDeadlineExceeded,
             fmt::format(
                 "all {} workers came, but were not connected with each other within {}; still waiting: {}",
                 guests_.size(), period(), listed_ranks(unfinished)));
    }
    wait(deadline_);
    receive_arrivals();
    hear_guests();
  }
}

// From here on the workers are on their own: one that is lost now is found by those who need it.
void Leader::let_go() {
  reception_.close();
  for (auto& guest : guests_) {
    if (guest) guest->connection.queue(number_of(Kind::kGo), {});
  }
  for (;;) {
    std::vector<pollfd> polled;
    for (auto& guest : guests_) {
      if (guest && !is_flushed_or_lost(guest->connection))
        polled.push_back({guest->connection.fd(), POLLOUT, 0});
    }
    if (polled.empty() || now() >= deadline_) return;
    wait_for(polled, deadline_);
  }
}

Met Leader::result() {
  Met met;
  met.offers.push_back(std::move(own_.card.offer));
  met.connections.emplace_back();
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
    Guest& guest = *guests_[rank];
    met.offers.push_back(std::move(guest.card.offer));
    met.connections.push_back(std::move(guest.local.is_open() ? guest.local : guest.connection));
  }
  return met;
}

void Leader::wait(Clock::time_point deadline) {
  std::vector<pollfd> polled;
  reception_.add_to(polled);
  for (const auto& guest : guests_) {
    if (!guest || !guest->connection.is_open()) continue;
    const short events = guest->connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    polled.push_back({guest->connection.fd(), events, 0});
  }
  wait_for(polled, std::min(deadline, reception_.next_deadline()));
}

void Leader::serve_reception() {
  for (Arrival& arrival : reception_.serve()) arrivals_.push_back(std::move(arrival));
}

void Leader::receive_arrivals() {
  serve_reception();
  while (!arrivals_.empty()) {
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    if (arrival.message.kind == number_of(Kind::kIntroduction)) {
      take_local(std::move(arrival));
    } else {
      admit(std::move(arrival));
    }
  }
}

void Leader::admit(Arrival arrival) {
  const auto hello = hello_in(arrival);
  if (!hello) return reception_.warn(arrival.connection.peer(), "did not say who it is");
  const std::string name = fmt::format("rank {} ({})", hello->rank, arrival.connection.peer());
  auto problem = difference(own_, *hello);
  if (!problem && (hello->rank == 0 || guests_[hello->rank])) {
    problem = fmt::format(
        "two workers have rank {}: {} and {}", hello->rank, arrival.connection.peer(),
        hello->rank == 0 ? std::string("worker 0 itself") : guests_[hello->rank]->connection.peer());
  }
  if (problem) {
    refused_.push_back(std::move(arrival.connection));
    refuse(ErrorCode::kInvalidArgument, *problem);
  }
  deadline_ = std::min(deadline_, deadline_of(*hello));
  arrival.connection.set_peer(name);
  guests_[hello->rank] = Guest{std::move(arrival.connection), Connection(), hello->card, false};
  ++num_present_;
}

void Leader::take_local(Arrival arrival) {
  const auto rank = introduced_rank(arrival, ticket_);
  const bool is_expected = rank && *rank < guests_.size() && guests_[*rank] &&
                           expects_local(*guests_[*rank]) && !guests_[*rank]->local.is_open() &&
                           arrival.connection.is_unix();
  if (!is_expected) return reception_.warn(arrival.connection.peer(), "is not of this meeting");
  arrival.connection.set_peer(fmt::format("rank {} ({})", *rank, arrival.connection.peer()));
  guests_[*rank]->local = std::move(arrival.connection);
}

void Leader::hear_guests() {
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
    if (!guests_[rank]) continue;
    std::vector<Message> messages;
    std::string loss;
    try {
      guests_[rank]->connection.flush();
    } catch (const Error& error) {
      loss = error.what();
    }
    try {  // also from one that is lost: it may have said why
      while (auto message = guests_[rank]->connection.try_receive()) messages.push_back(std::move(*message));
    } catch (const Error& error) {
      loss = error.what();
    }
    for (const Message& message : messages) hear(*guests_[rank], message);
    if (!loss.empty()) refuse(ErrorCode::kAborted, "a worker was lost while the workers met: " + loss);
  }
}

void Leader::hear(Guest& guest, const Message& message) {
  if (message.kind == number_of(Kind::kReady)) {
    guest.is_ready = true;
    return;
  }
  const auto complaint = refusal_in(message, Kind::kComplaint);
  if (complaint) refuse(complaint->code, complaint->text);
  refuse(ErrorCode::kInternal, fmt::format("{} sent a message of kind {} while the workers met",
                                           guest.connection.peer(), message.kind));
}

void Leader::refuse(ErrorCode code, const std::string& text) {
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
    if (!guests_[rank]) continue;
    refused_.push_back(std::move(guests_[rank]->connection));
    guests_[rank].reset();
  }
  dismiss(encode(Refusal{code, text}), code == ErrorCode::kDeadlineExceeded ? kFarewell : kLinger);
  throw Error(code, text);
}

// Everybody who has come, or comes now, is told; closing before they have read it could take it from them.
void Leader::dismiss(const std::vector<std::byte>& refusal, Clock::duration patience) {
  const Clock::time_point end = now() + patience;
  std::size_t num_told = 0;
  for (;;) {
    collect_latecomers();
    for (; num_told < refused_.size(); ++num_told) {
      if (refused_[num_told].is_open()) refused_[num_told].queue(number_of(Kind::kRefusal), refusal);
    }
    std::vector<pollfd> polled;
    for (Connection& connection : refused_) {
      if (!connection.is_open()) continue;
      try {
        if (connection.has_unsent() && connection.flush()) connection.finish_sending();
        while (connection.try_receive()) {
        }
        const short events = connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
        polled.push_back({connection.fd(), events, 0});
      } catch (const Error&) {
        connection.close();
      }
    }
    const bool awaits_latecomers = patience > kFarewell && refused_.size() + 1 < guests_.size();
    if (now() >= end || (polled.empty() && !awaits_latecomers)) return;
    reception_.add_to(polled);
    wait_for(polled, std::min(end, reception_.next_deadline()));
  }
}

void Leader::collect_latecomers() {
  serve_reception();
  for (Arrival& arrival : arrivals_) {
    if (hello_in(arrival)) refused_.push_back(std::move(arrival.connection));
  }
  arrivals_.clear();
}

}  // namespace

Met lead(const Meeting& meeting) { return Leader(meeting).run(); }

}  // namespace onesum::cluster
