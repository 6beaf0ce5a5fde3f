// The life of one membership of a cluster: who takes part, whether all are alive, what each calls, and how it
// ended.
//
// Every worker has connections to all others (rendezvous.h), which a thread of the epoch owns: it tells the
// others where this worker is, hears where they are, and sees when one dies. The first failure ends the
// epoch, everywhere: whoever sees it accuses, the lowest rank that lives judges, and all that can reach it
// report the same verdict.
//
// Threads: any, except that calls are entered and left by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/connection.h"
#include "cluster/verdict.h"

namespace onesum::cluster {

struct EpochOptions {
  std::vector<std::string> names;  // of all workers: how messages name them
  // A worker that nothing was heard of for so long has failed.
  std::chrono::milliseconds silence{60000};
  // An eventfd that is written to when the epoch ends; -1: none.
  int wake = -1;
};

// A worker's statement without the number of the call.
struct Words {
  std::string text;
  Bytes request;
};

// What is known of another worker.
struct Sighting {
  Whereabouts where;
  Clock::time_point progressed;  // since when its whereabouts are these
  bool has_left = false;         // it closed the cluster
};

class Epoch {
 public:
  Epoch(int rank, std::vector<Connection> connections, EpochOptions options);
  ~Epoch();  // close()
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(names_.size()); }
  // "worker 2 (/job:worker/task:2)"
  std::string name_of(int rank) const;

  // Relaxed: it says that there is a verdict to ask for, which has a lock of its own.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_relaxed); }

  // Words that calls are entered with, so that a worker that makes the call for the first time can be
  // answered. The number is not 0.
  std::uint64_t add_words(std::shared_ptr<const Words> words);
  void forget_words(std::uint64_t number);

  // The next call begins; returns its number. `words`: 0 if it was or will be told to everyone by exchange().
  std::uint64_t enter(std::uint64_t words) noexcept;
  void leave() noexcept;
  // How far the call is, for those who wait.
  void set_progress(std::uint64_t beats, int waits_for) noexcept;

  // Tells all workers what this one calls, and waits until all have told: by rank. `mine.call` is the call
  // that was entered last. Throws the verdict if the epoch ends meanwhile, deadline_exceeded naming those who
  // did not come, which ends the epoch.
  std::vector<Statement> exchange(const Statement& mine, Clock::time_point deadline);

  // What another worker called last; nullopt if it does not say within `patience`.
  std::optional<Statement> ask(int rank, std::chrono::milliseconds patience);

  // What is known of another worker.
  Sighting sighting(int rank) const;

  // Ends the epoch, if it has not ended yet, for this reason or one that was found before. Does not wait.
  void accuse(const Verdict& reason);

  // For an epoch that has ended: throws the verdict, which it awaits for some seconds; unavailable if it does
  // not come.
  [[noreturn]] void throw_verdict();
  void check() {
    if (has_ended()) throw_verdict();
  }

  // Says goodbye. Never blocks for long; the epoch is of no use any more.
  void close() noexcept;

 private:
  class Service;

  int rank_;
  std::vector<std::string> names_;
  std::atomic<bool> has_ended_ = false;
  std::unique_ptr<Service> service_;
};

}  // namespace onesum::cluster
