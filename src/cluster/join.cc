#include "cluster/join.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/text.h"
#include "cluster/agreement.h"
#include "cluster/dialer.h"
#include "cluster/hello.h"
#include "cluster/reception.h"
#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;

// Worker 0 ends the meeting at the earliest deadline of all; this long the verdict may be under way.
constexpr Clock::duration kGrace = 2s;
// Who has said where it listens does listen; more tries are for what happens in between.
constexpr int kMostRounds = 4;

class Member {
 public:
  explicit Member(const Meeting& meeting);
  Met run();

 private:
  struct Call {
    std::size_t rank;
    Dialer dialer;
  };

  void reach_leader();
  void listen();
  void hear_cards();
  void connect_with_others();
  void await_go();
  Met result();

  Dialer::Addresses addresses_of(std::size_t rank) const;
  std::vector<Call> calls_to_make() const;
  void proceed(std::vector<Call>& calls);
  void receive_arrivals();
  bool is_connected_from_above() const;
  void wait_for_others(const std::vector<Call>& calls);

  Message hear_leader();
  std::optional<Message> try_hear_leader();
  Message checked(Message message) const;
  [[noreturn]] void leader_was_lost(const Error& error) const;
  [[noreturn]] void complain(const Error& error);
  std::string period() const { return in_seconds(meeting_.deadline - start_); }

  const Meeting& meeting_;
  const std::size_t rank_;
  const std::size_t size_;
  Clock::time_point start_ = now();
  Passport passport_;
  std::vector<MeetingPlace> places_;  // of worker 0
  Connection leader_;
  Reception reception_;
  Hello hello_;
  Ticket ticket_{};
  std::vector<Card> cards_;              // by rank
  std::vector<Connection> connections_;  // by rank; that to worker 0 only if it replaces leader_
};

Member::Member(const Meeting& meeting)
    : meeting_(meeting),
      rank_(static_cast<std::size_t>(meeting.rank)),
      size_(static_cast<std::size_t>(meeting.size)),
      passport_{meeting.secret, meeting.job},
      reception_(passport_, fmt::format("rank {}", meeting.rank)),
      cards_(size_),
      connections_(size_) {}

Met Member::run() {
  reach_leader();
  listen();
  hear_cards();
  connect_with_others();
  await_go();
  return result();
}

void Member::reach_leader() {
  places_ = meeting_.lookup ? parse_places(meeting_.lookup(meeting_.deadline))
                            : std::vector<MeetingPlace>{meeting_.place};
  check_secret(places_, meeting_.secret);
  const auto addresses = [this](std::string& reason) {
    std::vector<SocketAddress> result;
    for (const MeetingPlace& place : places_) {
      for (const SocketAddress& address : resolve(place, reason)) result.push_back(address);
    }
    return result;
  };
  Dialer dialer("worker 0", addresses, passport_);
  for (;;) {
    if (auto connection = dialer.proceed()) {
      leader_ = std::move(*connection);
      return;
    }
    if (now() >= meeting_.deadline) {
      throw Error(ErrorCode::kDeadlineExceeded,
                  fmt::format("rank {} did not find worker 0 within {}; the last try was {}", rank_, period(),
                              dialer.last_failure()));
    }
    std::vector<pollfd> polled;
    dialer.add_to(polled);
    wait_for(polled, std::min(meeting_.deadline, dialer.next_deadline()));
  }
}

// On the address by which worker 0 is reached, which routes to the others. If that is a loopback one and
// worker 0's is not, this is worker 0's machine, and the others know how to reach that.
void Member::listen() {
  hello_ = hello_of(meeting_);
  if (leader_.is_unix() || !meeting_.machine.empty()) hello_.card.unix_name = add_unix_listener(reception_);
  if (!leader_.is_unix()) {
    MeetingPlace place = place_of(local_address(leader_.socket()));
    const bool all_are_here =
        std::ranges::all_of(places_, [](const MeetingPlace& p) { return p.is_on_this_machine(); });
    const bool is_with_leader = is_loopback(local_address(leader_.socket())) && !all_are_here;
    Made made = is_with_leader ? listen_everywhere(0) : listen_at(*ip_address(place.host, 0));
    if (!made.socket) {
      throw Error(ErrorCode::kUnavailable, fmt::format("rank {} cannot listen on {}: {}", rank_, place.host,
                                                       std::strerror(made.error)));
    }
    hello_.card.port = place_of(local_address(made.socket)).port;
    if (!is_with_leader) hello_.card.host = place.host;
    reception_.listen(std::move(made.socket));
  }
  try {
    leader_.send(number_of(Kind::kHello), encode(hello_), meeting_.deadline);
  } catch (const Error& error) {
    leader_was_lost(error);
  }
}

void Member::leader_was_lost(const Error& error) const {
  if (error.code() != ErrorCode::kUnavailable) throw error;
  throw Error(ErrorCode::kAborted, fmt::format("{} while the workers met", error.what()));
}

Message Member::checked(Message message) const {
  if (const auto refusal = refusal_in(message, Kind::kRefusal)) throw Error(refusal->code, refusal->text);
  return message;
}

std::optional<Message> Member::try_hear_leader() {
  std::optional<Message> message;
  try {
    message = leader_.try_receive();
  } catch (const Error& error) {
    leader_was_lost(error);
  }
  if (!message) return std::nullopt;
  return checked(std::move(*message));
}

Message Member::hear_leader() {
  for (;;) {
    if (auto message = try_hear_leader()) return std::move(*message);
    if (now() >= meeting_.deadline + kGrace) {
      throw Error(
          ErrorCode::kDeadlineExceeded,
          fmt::format("{} did not say within {} whether all workers have come", leader_.peer(), period()));
    }
    std::vector<pollfd> polled{{leader_.fd(), POLLIN, 0}};
    wait_for(polled, meeting_.deadline + kGrace);
  }
}

void Member::hear_cards() {
  const auto refuse = [this] {
    throw Error(ErrorCode::kInternal, fmt::format("{} sent cards that cannot be read", leader_.peer()));
  };
  const Message welcome = hear_leader();
  if (welcome.kind != number_of(Kind::kWelcome)) refuse();
  ticket_ = decode_ticket(welcome.payload);
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    const Message message = hear_leader();
    if (message.kind != number_of(Kind::kCard)) refuse();
    CardOf card = decode_card(message.payload);
    if (card.rank != rank) refuse();
    cards_[rank] = std::move(card.card);
  }
}

Dialer::Addresses Member::addresses_of(std::size_t rank) const {
  const Card& card = cards_[rank];
  if (leader_.is_unix() || are_on_one_machine(card, cards_[rank_])) {
    return [name = card.unix_name](std::string&) { return std::vector{unix_address(name)}; };
  }
  const std::string host = card.host.empty() ? place_of(peer_address(leader_.socket())).host : card.host;
  return [host, port = card.port](std::string& reason) {
    const auto address = ip_address(host, port);
    reason = fmt::format("it gave no IP address but {}", quoted(host));
    return address ? std::vector{*address} : std::vector<SocketAddress>();
  };
}

std::vector<Member::Call> Member::calls_to_make() const {
  std::vector<Call> calls;
  const bool replaces_leader = !leader_.is_unix() && are_on_one_machine(cards_[0], cards_[rank_]);
  for (std::size_t rank = replaces_leader ? 0 : 1; rank < rank_; ++rank) {
    calls.push_back({rank, Dialer(fmt::format("rank {}", rank), addresses_of(rank), passport_, kMostRounds)});
  }
  return calls;
}

bool Member::is_connected_from_above() const {
  return std::ranges::all_of(connections_.begin() + static_cast<std::ptrdiff_t>(rank_) + 1,
                             connections_.end(),
                             [](const Connection& connection) { return connection.is_open(); });
}

void Member::connect_with_others() {
  std::vector<Call> calls = calls_to_make();
  for (;;) {
    proceed(calls);
    receive_arrivals();
    if (const auto message = try_hear_leader()) {
      throw Error(ErrorCode::kInternal,
                  fmt::format("{} sent a message of kind {} while the workers connected", leader_.peer(),
                              message->kind));
    }
    if (calls.empty() && is_connected_from_above()) break;
    wait_for_others(calls);
  }
  reception_.close();
}

void Member::proceed(std::vector<Call>& calls) {
  try {
    std::erase_if(calls, [&](Call& call) {
      auto connection = call.dialer.proceed();
      if (!connection) return false;
      const auto introduction = encode(Introduction{ticket_, static_cast<std::uint32_t>(rank_)});
      connection->send(number_of(Kind::kIntroduction), introduction, meeting_.deadline);
      connections_[call.rank] = std::move(*connection);
      return true;
    });
  } catch (const Error& error) {
    complain(error);
  }
}

// Worker 0 tells everybody, this worker included; without an answer its own words must do.
void Member::complain(const Error& error) {
  Refusal verdict{error.code(), fmt::format("rank {}: {}", rank_, error.what())};
  const Clock::time_point end = now() + kGrace;
  try {
    leader_.send(number_of(Kind::kComplaint), encode(verdict), end);
    for (;;) {
      if (auto refusal = refusal_in(leader_.receive(end), Kind::kRefusal)) {
        verdict = std::move(*refusal);
        break;
      }
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): worker 0 is lost, too
  }
  throw Error(verdict.code, verdict.text);
}

void Member::receive_arrivals() {
  for (Arrival& arrival : reception_.serve()) {
    const auto rank = introduced_rank(arrival, ticket_);
    const bool is_expected = rank && *rank > rank_ && *rank < size_ && !connections_[*rank].is_open();
    if (!is_expected) {
      reception_.warn(arrival.connection.peer(), "is not of this meeting");
      continue;
    }
    arrival.connection.set_peer(fmt::format("rank {} ({})", *rank, arrival.connection.peer()));
    connections_[*rank] = std::move(arrival.connection);
  }
}

void Member::wait_for_others(const std::vector<Call>& calls) {
  const Clock::time_point end = meeting_.deadline + kGrace;
  if (now() >= end) {
    throw Error(ErrorCode::kDeadlineExceeded,
                fmt::format("rank {} was not connected with all others within {}", rank_, period()));
  }
  std::vector<pollfd> polled{{leader_.fd(), POLLIN, 0}};
  reception_.add_to(polled);
  Clock::time_point wake = std::min(end, reception_.next_deadline());
  for (const Call& call : calls) {
    call.dialer.add_to(polled);
    wake = std::min(wake, call.dialer.next_deadline());
  }
  wait_for(polled, wake);
}

void Member::await_go() {
  try {
    leader_.send(number_of(Kind::kReady), {}, meeting_.deadline + kGrace);
  } catch (const Error& error) {
    // It may have ended the meeting, and said why.
    if (error.code() != ErrorCode::kUnavailable) throw;
  }
  const Message message = hear_leader();
  if (message.kind != number_of(Kind::kGo)) {
    throw Error(ErrorCode::kInternal, fmt::format("{} sent a message of kind {} instead of the word to go",
                                                  leader_.peer(), message.kind));
  }
}

Met Member::result() {
  Met met;
  for (Card& card : cards_) met.offers.push_back(std::move(card.offer));
  if (!connections_[0].is_open()) connections_[0] = std::move(leader_);
  connections_[0].set_peer(fmt::format("rank 0 ({})", peer_name(connections_[0].socket())));
  met.connections = std::move(connections_);
  return met;
}

}  // namespace

Met join(const Meeting& meeting) { return Member(meeting).run(); }

}  // namespace onesum::cluster
