// Whole collectives that a vendor's library runs by itself between GPUs, of this process and of others.
//
// exec gives native steps to a communicator and joins them with its own by marks; which library it is nobody
// above knows. The order of additions inside is the library's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <onesum/error.h>

#include "base/element.h"
#include "engine/device.h"

namespace onesum::engine {

enum class NativeCollective : std::uint8_t {
  kAllReduce,  // on every device a source and a destination, which may be the same
  kReduce,     // on every device a source, at the root also the destination
  kBroadcast,  // at the root the source, on all others a destination
};

// What a device of this process has of one piece; null: none.
struct NativeShare {
  const std::byte* source = nullptr;
  std::byte* destination = nullptr;
};

struct NativeWork {
  NativeCollective collective = NativeCollective::kAllReduce;
  Element element = Element::kFloat32;
  int root = -1;                        // its rank in the group; kAllReduce: -1
  std::span<const std::size_t> counts;  // elements of each piece
  std::span<const NativeShare> shares;  // by piece, then by device of this process
};

// What brings the processes of a group together; whoever has it can join.
using NativeId = std::array<std::byte, 128>;

// Another process of the group has ended or failed; the library does not say which.
class PeerLost final : public Error {
 public:
  explicit PeerLost(const std::string& message) : Error(ErrorCode::kUnavailable, message) {}
};

// The devices that a collective runs over. All processes with devices in it give it the same work in the same
// order. Threads: one at a time, but abort().
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;  // does not wait for other processes
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Of this process, in the order of their ranks in the group.
  virtual std::size_t devices() const noexcept = 0;
  virtual int device(std::size_t number) const noexcept = 0;  // its index
  // Where the library's work for a device goes, after what the queue was given before. It is this
  // communicator's own, and nothing else is given to it but marks and waits: what shares a queue with a part
  // of a collective waits for all parts, and one of those may not have been given yet.
  virtual Queue& queue(std::size_t device) noexcept = 0;

  // Whether all processes have joined, and what it was given has entered the queues. Never blocks. Throws
  // unavailable, in the library's own words, if it has failed, PeerLost if another process has; then only
  // abort() is left.
  virtual bool is_ready() = 0;

  // Whether it can be given work: it is ready, and no other communicator of this process has its turn. This
  // one's ends when it is ready again.
  virtual bool take_turn() = 0;

  // One call of the library for all pieces and devices, in its turn.
  virtual void give(const NativeWork& work) = 0;

  // What is under way ends, with results that nobody may use, and everything else throws from now on. Any
  // thread.
  virtual void abort() noexcept = 0;
  virtual bool is_aborted() const noexcept = 0;

  // After that: as new, with the queues it had. As NativeEngine::join.
  virtual void rejoin(const NativeId& id) = 0;
};

class NativeEngine {
 public:
  using Id = NativeId;

  // A device of this process, by its index, and its rank in the group.
  struct Member {
    int device = 0;
    int rank = 0;
  };

  NativeEngine() = default;
  virtual ~NativeEngine() = default;
  NativeEngine(const NativeEngine&) = delete;
  NativeEngine& operator=(const NativeEngine&) = delete;

  virtual Id make_id() = 0;

  // All processes of a group of `size` devices, each once, with the same id. Does not wait for the others:
  // that is what is_ready() is for. `members`: ascending ranks.
  virtual std::unique_ptr<Communicator> join(const Id& id, int size, std::span<const Member> members) = 0;

  virtual bool can_sum(Element element) const noexcept = 0;

  // For people: "NCCL 2.28.9", and the file that it is in.
  virtual std::string description() const = 0;
  virtual std::string file() const = 0;
};

}  // namespace onesum::engine
