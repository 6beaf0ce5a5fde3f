// The life of one membership of a cluster: who takes part, whether all are alive, what each calls, and how it
// ended.
//
// The members tell each other over their links (links.h) where they are and what they call. The first failure
// ends the epoch, everywhere: whoever sees it accuses, the lowest rank that lives judges, and all that can
// reach it report the same verdict. Afterwards those who are left can agree on a new one (shrink).
//
// Threads: any, except that calls are entered and left by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/call_ledger.h"
#include "cluster/flight_recorder.h"
#include "cluster/links.h"
#include "cluster/shrinking.h"
#include "cluster/verdict.h"

namespace onesum::cluster {

struct Group {
  GroupId id = 0;
  std::vector<int> seats;          // of its members, by rank
  std::vector<std::string> names;  // of its members, by rank: how messages name them
};

// What is known of another worker.
struct Sighting {
  Whereabouts where;
  Clock::time_point progressed;  // since when its whereabouts are these
  bool has_left = false;         // it closed the cluster
};

class Epoch final : private Links::Listener {
 public:
  // This process's seat is one of the group's.
  Epoch(std::shared_ptr<Links> links, Group group);
  ~Epoch() override;  // close()
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(group_.seats.size()); }
  const Group& group() const noexcept { return group_; }
  Links& links() const noexcept { return *links_; }
  // "worker 2 (/job:worker/task:2)"
  std::string name_of(int rank) const;

  // An eventfd that is written to when the epoch ends; -1: none any more.
  void set_wake(int eventfd);

  // What others' flight recorders write, by rank; empty where it cannot be read. Must last until close().
  void set_records(std::vector<std::span<const std::byte>> records);

  // Relaxed: it says that there is a verdict to ask for, which has a lock of its own.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_relaxed); }

  // Words that calls are entered with, so that a worker that makes the call for the first time can be
  // answered. The number is not 0.
  std::uint64_t add_words(std::shared_ptr<const Words> words);
  void forget_words(std::uint64_t number);

  // The next call begins; returns its number. `words`: 0 if it was or will be told to everyone by exchange().
  std::uint64_t enter(std::uint64_t words) noexcept;
  void leave() noexcept { is_inside_.store(false, std::memory_order_relaxed); }
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
  // Whether it is in the call that this one is in, or was; as far as is known.
  bool takes_part(int rank) const;
  // Who has not come to the call that this worker is in, or for whom it waits there, and where these are; as
  // far as is known.
  std::string who_is_missing() const;

  // Waits until all others are there, before anything else is said. Throws deadline_exceeded naming those who
  // are not, or the verdict: this epoch's, or that of the one that its members know each other from.
  void meet(Epoch& parent, Clock::time_point deadline);

  // What transports tell each other before the first call.
  void send_set_up(int rank, std::span<const std::byte> payload, std::span<const int> descriptors = {});
  // Throws the verdict if the epoch ends meanwhile, which it does when the other one leaves, or the deadline
  // passes.
  Message receive_set_up(int rank, Clock::time_point deadline);

  // Ends the epoch, if it has not ended yet, for this reason or one that was found before. Does not wait.
  void accuse(const Verdict& reason);

  // Waits so long for its end. Whether it has come.
  bool ends_within(std::chrono::milliseconds patience);

  // For an epoch that has ended: throws the verdict, which it awaits for some seconds; unavailable if it does
  // not come.
  [[noreturn]] void throw_verdict();
  bool await_verdict();  // whether it has come
  void check() {
    if (has_ended()) throw_verdict();
  }

  struct Successor {
    Group group;
    std::uint64_t completed = 0;  // calls that all of them have completed
  };
  // For an epoch that has ended: agrees with all others that call this on who goes on. `completed`: calls.
  // Throws aborted if the others have decided to go on without this worker, unavailable where those who can
  // reach each other are too few, which closes the epoch, deadline_exceeded where some did not come; it may
  // be called again then.
  Successor shrink(std::uint64_t completed, Clock::time_point deadline);

  // Says goodbye. Does not wait; the epoch is of no use any more.
  void close() noexcept;

 private:
  enum class State : std::uint8_t { kSelf, kHere, kLeft, kGone };
  struct Member {
    State state = State::kHere;
    bool gave_up = false;  // it says that it has lost this worker
    Sighting sighting;
    std::optional<Statement> answer;
    std::deque<Message> set_up;
  };

  // On the links' thread, or under their lock.
  void hear(int seat, Message&& message) override;
  void lose(int seat, const Loss& loss) override;
  void beat() override;

  std::optional<int> rank_of_seat(int seat) const;
  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  bool is_other(int rank) const noexcept { return rank != rank_; }

  void hear_from(int rank, Tell kind, Message&& message);
  void hear_statement(int rank, Statement statement);
  void hear_decision(int rank, const Decision& decision);
  void say_goodbye();
  void leave_group(int rank);
  void tell(int rank, Tell kind, std::span<const std::byte> payload, std::span<const int> descriptors = {});
  void answer();
  void send_shrinking();

  bool takes_part_in(std::uint64_t call, int rank) const;
  std::string describe(int rank) const;
  std::string list(const std::vector<int>& ranks) const;  // described
  std::string names_of(const std::vector<int>& ranks) const;
  std::string whereabouts_of(int rank) const;
  std::vector<RecordedCall> recorded(int rank) const;
  void log_last_calls(int rank) const;
  std::string absent(const CallLedger::Statements& statements) const;
  void wait_once(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, const Statement& mine);
  void accuse_who_left(const Statement& mine, const CallLedger::Statements& statements);
  void accuse_absent(const Statement& mine, const CallLedger::Statements& statements);

  // The waiting threads learn that it is over; the verdict follows.
  void end();
  // The lowest rank that is not known to be gone.
  int judge() const;
  void set_verdict(const Verdict& verdict);
  void judge_or_report(const Verdict& reason);
  void report_again(int rank);

  void await_decision(std::unique_lock<std::mutex>& lock, Clock::time_point deadline);
  void give_up_hung(Clock::time_point began);
  void give_up_absent();
  std::string waited_for() const;
  [[noreturn]] void fail_as_cut_off();

  const std::shared_ptr<Links> links_;
  const Group group_;
  int rank_ = 0;

  // Where this worker is. Relaxed: others hear of it now and then.
  std::atomic<bool> is_inside_ = false;
  std::atomic<std::uint64_t> beats_ = 0;
  std::atomic<int> waits_for_ = -1;
  std::atomic<bool> has_ended_ = false;

  // Under the lock of the links, but for what the ledger says.
  CallLedger ledger_;
  std::vector<Member> members_;
  Whereabouts told_;
  int wake_ = -1;
  std::vector<std::span<const std::byte>> records_;
  std::optional<Verdict> reported_;  // to a judge that has not answered
  int reported_to_ = 0;
  std::optional<Verdict> verdict_;
  Shrinking shrinking_;
  bool has_taken_decision_ = false;
  bool is_closed_ = false;
};

}  // namespace onesum::cluster
