// The connections of this process with all workers it has met, and the thread that serves them.
//
// Several groups of workers (epoch.h) can exist at a time, and one after the other; all of them share one
// connection for each pair of workers. A message belongs to a group, or to the link itself. The thread keeps
// every link alive, and notices when one is lost: by the end of the process, the end of the stream, or
// silence. A link that was lost stays so, and what becomes of the other end later is not known.
//
// Workers are named by their *seat*: their rank when they met, which no later group changes.
//
// Everything is under one lock, which the thread does not hold while it waits: what a listener shares with
// callers is safe under lock() too. Functions that say "locked" want it held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/connection.h"

namespace onesum::cluster {

using GroupId = std::uint64_t;

// Why nothing comes from a seat any more.
struct Loss {
  enum class Kind : std::uint8_t {
    kEnded,   // the kernel says so: the process has ended, or has closed its end
    kSilent,  // nothing was heard of it for too long
    kBroken,  // the connection failed, what came over it made no sense, or nobody looked for too long
    kGaveUp,  // it says that it has lost this worker
  };
  Kind kind = Kind::kBroken;
  std::string how;  // goes on after "is gone: ", or after its name for kGaveUp
};

class Links {
 public:
  // Called by the thread, locked.
  class Listener {
   public:
    virtual ~Listener() = default;
    // What it throws (onesum::Error) costs the link to the sender.
    virtual void hear(int seat, Message&& message) = 0;
    virtual void lose(int seat, const Loss& loss) = 0;
    // Several times within the silence that counts as a loss.
    virtual void beat() = 0;
  };

  // `silence`: of so much a worker is lost.
  Links(int seat, std::vector<Connection> connections, std::chrono::milliseconds silence);
  // Sends what is left to be sent, for a moment.
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  int seat() const noexcept { return seat_; }
  std::chrono::milliseconds silence() const noexcept { return silence_; }
  // Whether messages to it can carry descriptors, and which address of this machine leads to it.
  bool carries_descriptors(int seat) const;
  std::string host_towards(int seat) const;

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  // Waits (locked) until `is_so` or the deadline; returns whether it is so.
  template <class Predicate>
  bool wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, const Predicate& is_so) {
    return changed_.wait_until(lock, deadline, is_so);
  }
  // Waits (locked) for anything to happen, at most until the deadline.
  void wait_once(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
    changed_.wait_until(lock, deadline);
  }
  // Locked: whoever waits looks again.
  void notify() noexcept { changed_.notify_all(); }
  // Makes the thread look for what has changed. Any thread, locked or not.
  void wake() noexcept;

  // Locked. Messages that came for the group before are heard first. Another listener of the same group must
  // be gone.
  void add(GroupId group, Listener& listener);
  // Locked. The listener is not called any more; what comes for the group is dropped.
  void remove(GroupId group);

  // Locked. Never waits; nothing is sent to a seat that is lost.
  void send(int seat, GroupId group, std::uint16_t kind, std::span<const std::byte> payload,
            std::span<const int> descriptors = {});
  // Locked: whether the kernel has all that was sent to it.
  bool is_flushed(int seat) const;
  // Locked.
  const std::optional<Loss>& loss(int seat) const { return peer(seat).loss; }

 private:
  struct Early {
    GroupId group;
    int seat;
    Message message;
  };
  struct Peer {
    Connection connection;
    Fd process_ended;  // readable when it has; none where the kernel cannot tell
    Clock::time_point heard;
    std::optional<Loss> loss;
    std::size_t num_early = 0;  // of its messages that no listener has heard
    bool is_self = false;
  };

  Peer& peer(int seat) { return peers_[static_cast<std::size_t>(seat)]; }
  const Peer& peer(int seat) const { return peers_[static_cast<std::size_t>(seat)]; }
  bool is_alive(const Peer& peer) const { return !peer.is_self && !peer.loss; }
  // One that was lost and has not read everything yet: it may live, and must learn that it was given up.
  bool is_parting(const Peer& peer) const { return peer.loss && peer.connection.has_unsent(); }

  // The thread's, locked.
  void run();
  void beat();
  void check_silence(Clock::duration late);
  void flush_all();
  void flush(int seat);
  bool has_unsent() const;
  void wait_and_read(std::unique_lock<std::mutex>& lock, Clock::time_point until);
  void read_from(int seat);
  void see_end_of_process(int seat);
  void take(int seat, Message&& message);
  void hear(int seat, GroupId group, Message&& message);
  void hear_early();
  void lose(int seat, Loss loss);

  const int seat_;
  const std::chrono::milliseconds silence_;
  const std::chrono::milliseconds interval_;
  const Fd wake_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // connections are opened, read and closed by the thread alone
  std::unordered_map<GroupId, Listener*> listeners_;
  std::unordered_set<GroupId> removed_;
  std::vector<Early> early_;
  bool has_new_listener_ = false;
  bool was_asleep_ = false;  // for so long that others may have gone on: ends that are seen now prove nothing
  bool is_closing_ = false;
  std::thread thread_;
};

}  // namespace onesum::cluster
