// What the workers of a group have said of their calls, and what this one can say of its own.
//
// A call that is made for the first time is told by everyone to everyone. A worker that has made it before
// tells nobody; where another one asks, by telling, its words are looked up and sent.
//
// enter() and the questions about numbers may be asked from any thread; everything else is under the lock of
// whoever owns the ledger.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/verdict.h"

namespace onesum::cluster {

// A worker's statement without the number of the call.
struct Words {
  std::string text;
  Bytes request;
};

class CallLedger {
 public:
  using Statements = std::vector<std::optional<Statement>>;  // by rank

  CallLedger(int rank, int size)
      : rank_(static_cast<std::size_t>(rank)), size_(static_cast<std::size_t>(size)) {}

  // Words that calls are entered with. The number is not 0.
  std::uint64_t add_words(std::shared_ptr<const Words> words);
  void forget_words(std::uint64_t number) { words_.erase(number); }

  struct Entry {
    std::uint64_t call;
    bool is_asked;  // another worker waits for an answer: see answers()
  };
  // The next call begins. `words`: 0 if it was or will be told to everyone.
  Entry enter(std::uint64_t words) noexcept;
  std::uint64_t calls() const noexcept { return calls_.load(std::memory_order_relaxed); }  // entered so far

  // This worker tells; the result stays valid until take().
  const Statements& tell(const Statement& mine);
  // Another one does. Throws invalid_argument for one that runs too far ahead.
  void hear(int rank, Statement statement);
  // All have told.
  std::vector<Statement> take(std::uint64_t call);

  struct Answer {
    Statement statement;
    std::vector<int> to;
  };
  // What this worker owes to those who told it of calls that it has entered with words. Each is owed once.
  std::vector<Answer> answers();
  // Whether this call's answers were given by answers() the last time that there were any.
  bool has_answered(std::uint64_t call) const noexcept { return answered_ == call; }

  Statement last_statement() const;

 private:
  // Calls that a worker can still be asked about.
  static constexpr std::size_t kHistory = 64;

  Statements& statements_of(std::uint64_t call);
  Statement statement_of(std::uint64_t call) const;

  std::size_t rank_;
  std::size_t size_;
  std::atomic<std::uint64_t> calls_ = 0;
  std::array<std::atomic<std::uint64_t>, kHistory> history_{};  // words of the last calls
  std::atomic<bool> is_asked_ = false;  // a statement of a call waits that this worker has not entered
  std::map<std::uint64_t, Statements> statements_;  // by call
  std::optional<Statement> last_told_;              // of this worker, by all
  std::unordered_map<std::uint64_t, std::shared_ptr<const Words>> words_;
  std::uint64_t last_words_ = 0;
  std::uint64_t answered_ = UINT64_MAX;
};

}  // namespace onesum::cluster
