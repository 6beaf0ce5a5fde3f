// This process as one worker of a cluster of processes: its epoch, its transport, and the calls it makes
// together with the others.
//
// Used inside a turn of the cluster's sequence, one call at a time. The first failure ends it: every later
// call throws the verdict.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onesum/device.h>
#include <onesum/error.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cluster/epoch.h"
#include "cluster/flight_recorder.h"
#include "engine/transport.h"
#include "exec/bind.h"
#include "exec/executor.h"
#include "plan/cost_constants.h"
#include "planner/request.h"

namespace onesum::api {

struct Community;

struct SessionOptions {
  std::shared_ptr<const Community> community;
  std::vector<Device> workers;           // of all ranks
  std::vector<std::int32_t> machines{};  // of all ranks, numbered (api/machine_numbers.h)
  bool is_crowded = false;               // more workers than cores on this machine
  cluster::FlightRecorder recorder{};
  std::optional<std::uint32_t>
      life{};  // which one of the first group's, after shrinking; none: another group
};

// A call that all workers make, put together.
struct JointCall {
  planner::Request request;
  Fingerprint fingerprint;                      // of what all said
  std::shared_ptr<const cluster::Words> words;  // this worker's own
};

class Session {
 public:
  Session(std::unique_ptr<engine::Transport> transport, std::unique_ptr<cluster::Epoch> epoch,
          SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const noexcept { return epoch_->rank(); }
  int size() const noexcept { return epoch_->size(); }
  bool is_closed() const noexcept { return is_closed_.load(std::memory_order_relaxed); }  // by close()
  const std::vector<Device>& workers() const noexcept { return options_.workers; }
  const std::vector<std::int32_t>& machines() const noexcept { return options_.machines; }
  const std::shared_ptr<const Community>& community() const noexcept { return options_.community; }
  const plan::CostConstants& constants() const noexcept;
  const std::optional<std::uint32_t>& life() const noexcept { return options_.life; }
  cluster::Epoch& epoch() noexcept { return *epoch_; }
  engine::Transport& transport() noexcept { return *transport_; }
  exec::Site site(engine::ThreadedEngine& host, std::vector<engine::QueuedEngine*> queued) const;

  // While it lives, this worker is in a call. Throws the verdict if the session has ended.
  class Call {
   public:
    // `words`: of a call that was made before; 0: join() tells.
    Call(Session& session, std::uint64_t words, Clock::time_point deadline);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Tells the others what this worker calls, and puts together what all call. `describe` makes the request;
    // what it throws is told too. Throws the same error on all workers if they call differently, or one
    // refuses, which ends the session; a call that all refuse ends nothing.
    template <class Describe>
    JointCall join(const Describe& describe) {
      planner::Request mine;
      std::exception_ptr refusal;
      try {
        mine = describe();
      } catch (...) {
        refusal = std::current_exception();
      }
      return join_with(mine, refusal);
    }

    // Tells the others what this worker calls, and returns what all said when all have. Refusals and
    // differences as with join(); `check` throws this worker's own.
    std::vector<cluster::Statement> agree(cluster::Statement mine, const std::function<void()>& check = {});

    // Ends the session with the error that two workers call differently.
    [[noreturn]] void fail_by_difference(const cluster::Statement& mine, const cluster::Statement& other,
                                         int rank);

    std::uint64_t number() const noexcept { return number_; }
    Clock::time_point deadline() const noexcept { return deadline_; }

    // Something failed here that the others know nothing of: ends the session and throws it.
    [[noreturn]] void end_after(const std::exception_ptr& exception);

    // Does something that all workers do alike after join(). What it refuses all refuse; whatever else goes
    // wrong, such as a device that only this one lacks, is this worker's own trouble and ends the session.
    template <class Work>
    auto alike(const Work& work) {
      try {
        return work();
      } catch (const Error& error) {
        if (is_refusal(error.code())) throw;
        end_after(std::current_exception());
      } catch (...) {
        end_after(std::current_exception());
      }
    }

    // Runs a program that all have bound alike. Any error ends the session. `token`: of what all call and
    // have bound. `bytes`: of what is passed, for the report. `caller`: of programs with calls.
    exec::Waiting run(exec::Instance& instance, std::uint64_t token, std::size_t bytes,
                      exec::FunctionCaller* caller = nullptr);

    // How messages name the call; must live as long as it.
    void set_text(std::string_view text) noexcept;

   private:
    class Watch;
    static bool is_refusal(ErrorCode code) noexcept {
      return code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnimplemented;
    }
    JointCall join_with(const planner::Request& mine, std::exception_ptr refusal);
    std::vector<cluster::Statement> exchange(const cluster::Statement& mine,
                                             const std::exception_ptr& refusal);
    [[noreturn]] void fail(ErrorCode code, int suspect, const std::string& text);
    [[noreturn]] void fail_by_loss(const Error& error);
    std::string who_waits() const;
    std::string name() const;

    Session& session_;
    Clock::time_point deadline_;
    std::uint64_t number_;
    int exceptions_ = std::uncaught_exceptions();  // when it began
    std::string_view text_;
    std::string told_;  // by join()
  };

  // Words of a call that this worker will make again, for as long as the object lives.
  class KnownCall {
   public:
    KnownCall() = default;
    KnownCall(Session& session, std::shared_ptr<const cluster::Words> words)
        : session_(&session), number_(session.epoch_->add_words(std::move(words))) {}
    KnownCall(KnownCall&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)), number_(other.number_) {}
    KnownCall& operator=(KnownCall&&) = delete;
    ~KnownCall() {
      if (session_ != nullptr) session_->epoch_->forget_words(number_);
    }
    std::uint64_t number() const noexcept { return number_; }

   private:
    Session* session_ = nullptr;
    std::uint64_t number_ = 0;
  };

  // A call of this worker was given up before its turn: from now on nobody knows which call is which. Throws
  // the verdict.
  [[noreturn]] void give_up(const Error& error);

  // Calls that this worker has completed, and those of the session that this one came from which all workers
  // of this one have.
  std::uint64_t completed_calls() const noexcept { return completed_.load(std::memory_order_relaxed); }
  std::uint64_t completed_by_all() const noexcept { return completed_by_all_; }
  void set_completed_by_all(std::uint64_t calls) noexcept { completed_by_all_ = calls; }

  // The others are told, and every call throws from now on, also one that is under way. Any thread.
  void close() noexcept;

 private:
  void count(std::size_t bytes, const exec::Waiting& waiting) noexcept;
  void quit() noexcept;
  void report() noexcept;

  std::unique_ptr<engine::Transport> transport_;
  std::unique_ptr<cluster::Epoch> epoch_;
  SessionOptions options_;
  std::uint64_t beats_ = 0;                   // of all calls so far
  std::atomic<std::uint64_t> completed_ = 0;  // relaxed: a number that somebody may ask for
  std::uint64_t completed_by_all_ = 0;
  // What all calls did together.
  std::uint64_t calls_ = 0;
  std::uint64_t bytes_ = 0;
  std::chrono::nanoseconds waited_{0};
  std::vector<std::chrono::nanoseconds> waited_for_;  // by rank: the longest wait of each call
  bool has_reported_ = false;
  // Sequentially consistent: either a call sees that the session is closed, or close() sees the call and
  // leaves the transport to it.
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> is_inside_ = false;
  std::atomic<bool> has_quit_ = false;
};

}  // namespace onesum::api
