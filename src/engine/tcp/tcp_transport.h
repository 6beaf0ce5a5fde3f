// Messages between processes over TCP, by one connection for each pair of ranks.
//
// Whoever makes it brings the connections, which the workers made together and proved to each other. A
// message is a header and its payload, sent from where the payload lies, and received into where it belongs:
// the kernel's copies are all there are, but for what comes together with a header, and for what comes before
// anybody has said where it belongs. Who sends and who receives are always the thread that waits, so that
// nothing is read or written after quit().
//
// A peer's end shows as a connection that ends. That alone is no failure: it may have finished, or somebody
// else knows better. Only who waits for it for long although nobody has said more throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/boxes.h"
#include "engine/credits.h"
#include "engine/tcp/stream.h"
#include "engine/transport.h"

namespace onesum::engine::tcp {

// Alike on all ranks, except for the rank.
struct TcpOptions {
  int rank = 0;
  int size = 1;
  Limits limits;
  bool checksums = false;  // CRC32C of every message, verified on arrival
};

class TcpTransport final : public Transport {
 public:
  // `sockets` by rank; ranks without one are not reached through this transport. Throws invalid_argument for
  // options that cannot be, resource_exhausted, and unimplemented for checksums in a build that has none.
  TcpTransport(const TcpOptions& options, std::vector<Fd> sockets);
  ~TcpTransport() override { quit(); }

  // For drills: the next message to this peer that has a payload travels with one byte of it changed after
  // its checksum was made. False if the peer is not reached through this transport.
  bool damage_next(int peer) noexcept;

  const Limits& limits() const noexcept override { return options_.limits; }
  NearBoxes near_boxes(int /*peer*/) const noexcept override { return {.lends = true}; }
  std::byte* outbox(Box box, int peer, unsigned phase) noexcept override {
    return box == Box::kPair ? boxes_.outbox(peer, phase) : nullptr;
  }
  const std::byte* inbox(Box box, int peer, unsigned phase) noexcept override {
    return box == Box::kPair ? boxes_.inbox(peer, phase) : nullptr;
  }
  void begin(const Beat& beat, std::span<const Place> incoming) override;
  bool may_send(const Beat& beat, int peer) noexcept override;
  void send(const Beat& beat, const Place& place) override;
  void send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) override;
  bool is_taken(const Beat& beat) noexcept override;
  void receive_into(const Beat& beat, const Place& place, std::span<const Stretch> payload) override;
  Arrival arrival(const Beat& beat, const Place& place) override;
  void finish(const Beat& beat) override;
  bool is_flushed() noexcept override;
  // Throws PeerLost where a connection has ended that somebody still waits for.
  bool progress() override;
  bool arm() override;
  void disarm() noexcept override;
  int event_fd() const noexcept override { return events_.get(); }
  bool quit() noexcept override;

 private:
  // A message that comes. Of what is said of a beat, the number is one more than the beat's.
  struct Incoming {
    std::uint64_t expected = 0;   // the beat that has begun and waits for it
    std::uint64_t arrived = 0;    // the beat of which it is here
    std::uint64_t placed = 0;     // the beat that has said in which memory it belongs,
    std::vector<Stretch> memory;  // which is this,
    bool is_in_box = false;       // but it began to come before, and lies in the inbox
    Header header;
    std::optional<Arrival> verdict;
  };

  // What a peer has said last in beats of a phase.
  struct Said {
    std::uint64_t beat = 0;  // one more than its number
    std::uint64_t token = 0;
  };

  struct Peer final : Sink {
    Peer(TcpTransport& transport, int number, Fd socket);
    bool begin(const Header& header, Parts& payload) override;
    void end(const Header& header) override;
    bool is_awaited() const noexcept { return expected > 0 || refused != 0; }
    void await(std::size_t messages, std::uint64_t copies) noexcept;

    TcpTransport* owner;
    int rank;
    Stream stream;
    Credits credits;
    std::vector<Said> said;                      // by phase, as are
    std::vector<std::deque<Incoming>> incoming;  // and by number; addresses stay while they grow
    std::vector<std::deque<Outgoing>> outgoing;  // likewise
    std::vector<std::size_t> unsent;             // messages
    Outgoing news;                               // that this rank has finished beats
    Header news_header;
    std::size_t unsent_news = 0;
    bool has_more_news = false;
    std::size_t expected = 0;   // messages, of beats that have begun
    std::uint64_t refused = 0;  // copies of the outbox that this rank waits for, a bit for each phase
    bool damages_next = false;  // a drill
    bool is_stray = false;      // what comes is of a beat that is over
    std::vector<std::byte> nowhere;
    std::optional<Clock::time_point> lost;  // nothing comes any more: since then, or since it is waited for
  };

  unsigned phase_of(std::uint64_t beat) const noexcept {
    return static_cast<unsigned>(beat % options_.limits.phases);
  }
  Peer& peer(int rank) noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  void require_place(const Place& place) const;
  Incoming& incoming_of(Peer& from, std::uint64_t beat, std::uint32_t number);
  Outgoing& outgoing_of(Peer& to, const Beat& beat, const Place& place);
  std::byte* write_header(const Beat& beat, const Place& place, std::span<const Stretch> payload);
  void send_news(Peer& to);
  void move_to_memory(const Peer& from, const Incoming& message);
  Arrival judge(const Beat& beat, const Place& place, Incoming& message);
  bool push(Peer& to);
  bool pull(Peer& from);
  bool pull_all();
  void check_lost() const;
  void let_arrive() noexcept;

  TcpOptions options_;
  Boxes boxes_;
  std::deque<Peer> peers_;    // by rank
  std::vector<int> reached_;  // ranks
  Fd events_;                 // of connections, during a sleep
  std::vector<pollfd> polled_;
  std::uint64_t begun_ = 0;     // beats
  std::uint64_t finished_ = 0;  // of these
  bool has_lost_ = false;
  bool has_quit_ = false;
};

}  // namespace onesum::engine::tcp
