#include "cluster/call_ledger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

namespace onesum::cluster {
namespace {

// Statements that one worker may send ahead of this one's calls.
constexpr std::size_t kMostAhead = 16;

}  // namespace

std::uint64_t CallLedger::add_words(std::shared_ptr<const Words> words) {
  words_.emplace(++last_words_, std::move(words));
  return last_words_;
}

CallLedger::Entry CallLedger::enter(std::uint64_t words) noexcept {
  const std::uint64_t call = calls_.load(std::memory_order_relaxed);
  // Released with calls_, whose readers look at the history afterwards.
  history_[call % kHistory].store(words, std::memory_order_relaxed);
  calls_.store(call + 1, std::memory_order_seq_cst);
  // With the store to is_asked_ before the load of calls_ in hear() and answers(): one of the two sees the
  // other.
  return {call, is_asked_.load(std::memory_order_seq_cst)};
}

CallLedger::Statements& CallLedger::statements_of(std::uint64_t call) {
  Statements& statements = statements_[call];
  statements.resize(size_);
  return statements;
}

const CallLedger::Statements& CallLedger::tell(const Statement& mine) {
  Statements& statements = statements_of(mine.call);
  statements[rank_] = mine;
  return statements;
}

void CallLedger::hear(int rank, Statement statement) {
  const auto from = static_cast<std::size_t>(rank);
  const auto ahead =
      std::ranges::count_if(statements_, [&](const auto& s) { return s.second[from].has_value(); });
  if (static_cast<std::size_t>(ahead) >= kMostAhead) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("sent more than {} statements ahead", kMostAhead));
  }
  Statements& statements = statements_of(statement.call);
  statements[from] = std::move(statement);
  is_asked_.store(true, std::memory_order_seq_cst);
}

std::vector<Statement> CallLedger::take(std::uint64_t call) {
  std::vector<Statement> all;
  last_told_ = *statements_.at(call)[rank_];
  for (std::optional<Statement>& statement : statements_.at(call)) all.push_back(std::move(*statement));
  statements_.erase(call);
  return all;
}

std::vector<CallLedger::Answer> CallLedger::answers() {
  std::vector<Answer> answers;
  const std::uint64_t calls = calls_.load(std::memory_order_seq_cst);
  bool is_asked = false;
  for (auto s = statements_.begin(); s != statements_.end();) {
    const auto& [call, statements] = *s;
    const bool is_recent = call + kHistory > calls;
    const bool is_told = is_recent && history_[call % kHistory].load(std::memory_order_relaxed) == 0;
    if (call >= calls || is_told) {
      is_asked = is_asked || call >= calls;
      ++s;
      continue;
    }
    Answer& answer = answers.emplace_back(Answer{statement_of(call), {}});
    for (std::size_t r = 0; r < size_; ++r) {
      if (statements[r]) answer.to.push_back(static_cast<int>(r));
    }
    answered_ = call;
    s = statements_.erase(s);
  }
  is_asked_.store(is_asked, std::memory_order_seq_cst);
  return answers;
}

Statement CallLedger::last_statement() const {
  const std::uint64_t calls = calls_.load(std::memory_order_seq_cst);
  if (calls == 0) return {.text = "nothing yet"};
  return statement_of(calls - 1);
}

// What this worker said, or can say, of one of its calls.
Statement CallLedger::statement_of(std::uint64_t call) const {
  const auto told = statements_.find(call);
  if (told != statements_.end() && told->second[rank_]) return *told->second[rank_];
  if (last_told_ && last_told_->call == call) return *last_told_;
  Statement mine{.call = call};
  const auto known = words_.find(history_[call % kHistory].load(std::memory_order_relaxed));
  const bool is_recent = call + kHistory > calls_.load(std::memory_order_relaxed);
  if (!is_recent || known == words_.end()) {
    mine.text = "a call that it has forgotten";
    mine.is_refused = true;
    mine.code = ErrorCode::kAborted;
    return mine;
  }
  mine.text = known->second->text;
  mine.request = known->second->request;
  return mine;
}

}  // namespace onesum::cluster
