// A rank of a communicator: its connection to the meeting point, the thread that listens there, and the
// collectives that streams run on it, one after the other in the order of their calls.
//
// A collective that goes wrong hangs until the communicator is aborted, as NCCL's do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nccl.h>

#include "emulated_gpu/stream.h"
#include "emulated_gpu/wire.h"

namespace onesum::emulated {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  struct Traits {
    std::string meeting;
    int ranks;
    int rank;
    int device;
    bool is_blocking;
  };
  explicit Communicator(Traits traits) : traits_(std::move(traits)) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Traits& traits() const { return traits_; }

  // Meets the other ranks, on a thread of its own.
  void start();
  // ncclInProgress if they have not come in time.
  ncclResult_t wait_until_met(std::chrono::seconds at_most);

  // Of the meeting, then of launches, then of collectives; also lets a launch or a farewell go on.
  ncclResult_t poll();
  bool is_ready();  // has met, and nothing is being launched

  struct Turn {
    std::uint64_t number;
    std::shared_ptr<void> pending;  // goes when the collective is over, or was dropped
  };
  Turn take_turn();
  enum class Mishap { kNone, kHang, kAsyncError };
  struct Collective {
    Frame frame;
    const std::byte* brings = nullptr;  // null: nothing
    std::byte* gets = nullptr;          // null: nothing
    std::size_t bytes = 0;
    Mishap mishap = Mishap::kNone;
    int error = ncclSuccess;  // of kAsyncError
  };
  // On the stream's thread.
  void run(const Collective& collective, const Turn& turn);

  // What a non-blocking communicator has enqueued counts as enqueued when poll has said so.
  void launch_on(const std::shared_ptr<Stream>& stream);

  void abort();
  // Waits until all collectives are over, if asked to, and leaves.
  void finalize(bool waits);

  // How many collectives were called, and who called one outside a group, which finds a thread that would
  // have waited for itself. Guarded by the world's lock.
  std::uint64_t calls = 0;
  std::optional<std::thread::id> lone_caller;

 private:
  void live();
  bool meet();
  void take(const Frame& frame, std::vector<std::byte> payload);
  void fail(ncclResult_t error);
  void end_launches();
  void leave(std::unique_lock<std::mutex>& lock);

  const Traits traits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int fd_ = -1;
  ncclResult_t meeting_ = ncclInProgress;
  ncclResult_t error_ = ncclSuccess;
  bool is_aborted_ = false;
  bool is_leaving_ = false;
  bool has_left_ = false;
  bool is_dismissed_ = false;  // the meeting point knows that it has left, or is gone
  std::int32_t meeting_process_ = 0;
  bool meeting_has_left_ = false;
  std::uint64_t turns_given_ = 0;
  std::uint64_t turns_over_ = 0;
  int pending_ = 0;
  std::optional<std::vector<std::byte>> result_;
  struct Launch {
    std::shared_ptr<Stream> stream;
    std::thread::id by;
  };
  std::vector<Launch> launching_;  // guarded by the world's lock
  std::optional<std::chrono::steady_clock::time_point> launched_at_;
};

// Handles. Null for one that is not known.
ncclComm_t enlist(const std::shared_ptr<Communicator>& communicator);
std::shared_ptr<Communicator> find_communicator(ncclComm_t handle);
void forget_communicator(ncclComm_t handle);
std::size_t count_communicators();
// Others of this process at the same meeting.
std::vector<std::shared_ptr<Communicator>> siblings_of(const Communicator& communicator);

}  // namespace onesum::emulated
