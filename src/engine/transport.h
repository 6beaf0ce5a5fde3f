// What carries messages between ranks that live in different processes.
//
// A call is cut into *beats*, numbered over the whole life of a transport and alike on all ranks. Every
// ordered pair of ranks has an outbox of `Limits::phases` copies, of which beat b uses copy b mod phases.
// Each message of a beat has a place of its own in the copy, which both ends know; nothing is overwritten
// inside a beat, and nothing is given back but the whole copy, when the receiver has finished the beat.
//
//   begin(beat) … may_send(peer), write the payload, send(place) … arrival(place), read … finish(beat)
//
// What goes to several ranks need not be written for each of them: a rank may have a common outbox, from
// which all who are near read. A message in there is sent once, for whoever waits for it; its number is its
// own among all that the rank has there in the beat.
//
// Where NearBoxes::lends says so, a payload may lie in memory of the caller's instead: it is sent from there,
// and received straight into there, and its room in the box is not used. How one end does it is nothing to
// the other.
//
// As many beats as there are copies may be under way at a time; they begin and finish in their order.
//
// Whoever binds a call decides on places; a transport knows nothing of plans. No function blocks: the
// executor asks again, and sleeps on event_fd() after arm() has said that there is nothing to do.
//
// Threads: one at a time. Errors: a peer's death shows in nothing here but messages that do not come; whoever
// knows of it makes the caller give up, after which only quit() may be called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace onesum::engine {

// Places begin at multiples of this, and this many bytes before each payload belong to the transport.
inline constexpr std::size_t kMessageAlignment = 64;
inline constexpr std::size_t kMessageHeader = 64;

// Of one copy of an outbox. All ranks of a transport have the same.
struct Limits {
  std::size_t bytes = 0;       // of one beat, headers included
  std::uint32_t messages = 0;  // in one beat: to one rank, and to several of them in common
  unsigned phases = 2;         // copies
  std::size_t room = 0;        // of a copy in shared memory, as NearBoxes says: at least bytes, or 0
  // As bytes, of the common outbox, where all ranks are near each other. 0: not all of them are, and what
  // goes to several of them must have room in the outbox of each pair.
  std::size_t common_bytes = 0;
  friend bool operator==(const Limits&, const Limits&) = default;
};

enum class Box : std::uint8_t {
  kPair,    // the outbox of the two ranks
  kTiny,    // where the transport looks for messages: one cache line less to wait for
  kCommon,  // the sender's common outbox
  kCommonTiny,
};
inline constexpr std::size_t kBoxes = 4;
inline bool is_common(Box box) noexcept { return box == Box::kCommon || box == Box::kCommonTiny; }
inline bool is_tiny(Box box) noexcept { return box == Box::kTiny || box == Box::kCommonTiny; }

// Where a message lies in the outbox that it takes.
struct Place {
  int peer = 0;              // the rank at the other end; of a common one that is sent: one of those
  std::uint32_t number = 0;  // among the beat's messages in the box
  std::size_t offset = 0;    // of the payload, at least kMessageHeader; tiny: number * NearBoxes::tiny_stride
  std::size_t bytes = 0;     // of the payload; may be 0
  Box box = Box::kPair;
  bool is_lent = false;  // the payload does not lie there, but where send_from() or receive_into() says
  friend bool operator==(const Place&, const Place&) = default;
};

// Which boxes two ranks have besides that of the pair. Both have the same.
struct NearBoxes {
  std::size_t tiny_bytes = 0;  // payloads up to this; 0: no tiny ones
  std::size_t tiny_stride = 0;
  bool has_common = false;  // then so have both with whoever one of them has it with
  // Of each copy of a pair's outbox and of the common one. A beat that needs less may lie anywhere in it, so
  // that the next beats need not write where the other end has just read. 0: a beat begins where a copy does.
  std::size_t room = 0;
  bool lends = false;  // payloads of the pair's box may lie elsewhere
  friend bool operator==(const NearBoxes&, const NearBoxes&) = default;
};

// Memory in which a payload lies, or a part of it.
using Stretch = std::span<std::byte>;

// The token stands for the call as its rank sees it: ranks that call alike have the same.
struct Beat {
  std::uint64_t number = 0;
  std::uint64_t token = 0;
  // Whoever takes part in this beat has finished all below this one: news for its peers that cost nothing.
  std::uint64_t settled = 0;
  // Where both ends share memory, payloads of this beat lie so much further in their boxes (NearBoxes::room).
  std::size_t shift = 0;
};

enum class Arrival : std::uint8_t {
  kNotYet,
  kHere,
  kMismatch,  // a message of this beat came, of another token: the sender is in another call
  kCorrupt,   // the checksum is wrong
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const Limits& limits() const noexcept = 0;

  virtual NearBoxes near_boxes(int /*peer*/) const noexcept { return {}; }

  // The copies' addresses, which stay: payloads are written to outbox + offset and read from inbox + offset.
  // Null: there is no such box.
  virtual std::byte* outbox(Box box, int peer, unsigned phase) noexcept = 0;
  virtual const std::byte* inbox(Box box, int peer, unsigned phase) noexcept = 0;

  // `incoming`: all messages that will come in this beat; it outlives the beat. Those that are lent are
  // received from receive_into() on. The beat that used the same copy before is finished.
  virtual void begin(const Beat& beat, std::span<const Place> incoming) = 0;

  // Whether the copy of the outbox is free, that is, the peer has finished the beat that used it last. Once
  // true it stays so for the beat.
  virtual bool may_send(const Beat& beat, int peer) noexcept = 0;

  // A rank that may still read from the copy of the common outbox, be it in this call or not; -1: none, and
  // none from now on.
  virtual int reader_of_common(const Beat& /*beat*/) noexcept { return -1; }

  // The payload is written; may_send said yes, and of a common one reader_of_common -1. Each once in a beat.
  virtual void send(const Beat& beat, const Place& place) = 0;

  // As send(), of a payload that lies in this memory, one stretch after the other, which stays as it is until
  // is_taken(). Of ranks that lend only.
  virtual void send_from(const Beat& /*beat*/, const Place& /*place*/, std::span<const Stretch> /*payload*/) {
  }

  // Whether what was sent by send_from() in this beat may be written again.
  virtual bool is_taken(const Beat& /*beat*/) noexcept { return true; }

  // From now on the message, which is lent, is written to this memory, until it is here or quit() returns.
  // Of ranks that lend only, once in a beat, and before arrival() is asked.
  virtual void receive_into(const Beat& /*beat*/, const Place& /*place*/,
                            std::span<const Stretch> /*payload*/) {}

  // Once kHere it stays so, and the payload may be read, until the beat is finished.
  virtual Arrival arrival(const Beat& beat, const Place& place) = 0;

  // All of the beat's messages were sent and read.
  virtual void finish(const Beat& beat) = 0;

  // Whether everything sent so far reaches its receivers without further help of this rank.
  virtual bool is_flushed() noexcept = 0;

  // Moves what waits to be moved. Cheap if there is nothing. False: all questions above are answered as
  // before.
  virtual bool progress() = 0;

  // Before a sleep: from now on whatever lets one of the questions above be answered otherwise makes
  // event_fd() readable. False: ask once more first. disarm() after every arm(), whatever it said.
  virtual bool arm() = 0;
  virtual void disarm() noexcept = 0;
  virtual int event_fd() const noexcept = 0;

  // The transport is given up, in the middle of whatever it was doing: when this returns, no memory of the
  // outboxes and inboxes is written any more, and none that was lent is read or written. Takes at most about
  // a second; false if that was not enough for the outboxes and inboxes.
  virtual bool quit() noexcept = 0;
};

}  // namespace onesum::engine
