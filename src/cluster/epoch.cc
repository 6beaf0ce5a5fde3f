#include "cluster/epoch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/interrupt.h"
#include "base/log.h"
#include "cluster/secret.h"

namespace onesum::cluster {
namespace {

using std::chrono::milliseconds;

// How long a verdict is awaited: the worker that gives it may have to notice first that another one is dead.
constexpr std::chrono::seconds kVerdictPatience{5};
constexpr std::chrono::seconds kLongWait{10};
constexpr std::size_t kMostSetUps = 16;
constexpr std::size_t kLoggedCalls = 8;

std::uint64_t random_number() {
  std::array<std::byte, sizeof(std::uint64_t)> random{};
  fill_with_random(random);
  return std::bit_cast<std::uint64_t>(random);
}

bool all_told(const CallLedger::Statements& statements) {
  return std::ranges::all_of(statements, [](const auto& statement) { return statement.has_value(); });
}

int first_absent(const CallLedger::Statements& statements) {
  const auto absent = std::ranges::find_if(statements, [](const auto& s) { return !s.has_value(); });
  return absent == statements.end() ? -1 : static_cast<int>(absent - statements.begin());
}

}  // namespace

Epoch::Epoch(std::shared_ptr<Links> links, Group group)
    : links_(std::move(links)),
      group_(std::move(group)),
      rank_(static_cast<int>(std::ranges::find(group_.seats, links_->seat()) - group_.seats.begin())),
      ledger_(rank_, size()),
      members_(group_.seats.size()),
      shrinking_(rank_, size(), random_number()) {
  const auto lock = links_->lock();
  for (Member& member : members_) member.sighting.progressed = now();
  member(rank_).state = State::kSelf;
  for (int r = 0; r < size(); ++r) {
    const int seat = group_.seats[static_cast<std::size_t>(r)];
    if (const std::optional<Loss>& loss = links_->loss(seat)) lose(seat, *loss);
  }
  links_->add(group_.id, *this);
}

Epoch::~Epoch() { close(); }

void Epoch::close() noexcept {
  const auto lock = links_->lock();
  say_goodbye();
}

void Epoch::say_goodbye() {
  if (std::exchange(is_closed_, true)) return;
  beat();  // so that others know after how many calls
  for (int r = 0; r < size(); ++r) tell(r, Tell::kGoodbye, {});
  links_->remove(group_.id);
  // The others may count on this worker in a group that it has not entered.
  const std::optional<Proposal>& next = shrinking_.decided();
  if (next && !has_taken_decision_ && std::ranges::find(next->members, rank_) != next->members.end()) {
    for (const int r : next->members) {
      const auto kind = static_cast<std::uint16_t>(Tell::kGoodbye);
      links_->send(group_.seats[static_cast<std::size_t>(r)], next->group, kind, {});
    }
    links_->remove(next->group);
  }
  if (!verdict_) verdict_ = Verdict{ErrorCode::kAborted, rank_, 0, "this worker has closed the cluster"};
  end();
  wake_ = -1;
  records_.clear();
}

std::string Epoch::name_of(int rank) const {
  return fmt::format("worker {} ({})", rank, group_.names[static_cast<std::size_t>(rank)]);
}

void Epoch::set_wake(int eventfd) {
  const auto lock = links_->lock();
  wake_ = eventfd;
}

// ---- calls

std::uint64_t Epoch::add_words(std::shared_ptr<const Words> words) {
  const auto lock = links_->lock();
  return ledger_.add_words(std::move(words));
}

void Epoch::forget_words(std::uint64_t number) {
  const auto lock = links_->lock();
  ledger_.forget_words(number);
}

std::uint64_t Epoch::enter(std::uint64_t words) noexcept {
  is_inside_.store(true, std::memory_order_relaxed);
  const CallLedger::Entry entry = ledger_.enter(words);
  if (entry.is_asked) {
    const auto lock = links_->lock();
    answer();
  }
  return entry.call;
}

void Epoch::set_progress(std::uint64_t beats, int waits_for) noexcept {
  beats_.store(beats, std::memory_order_relaxed);
  waits_for_.store(waits_for, std::memory_order_relaxed);
}

std::vector<Statement> Epoch::exchange(const Statement& mine, Clock::time_point deadline) {
  auto lock = links_->lock();
  const Bytes bytes = to_bytes(mine);
  for (int r = 0; r < size(); ++r) tell(r, Tell::kStatement, bytes);
  const CallLedger::Statements& statements = ledger_.tell(mine);
  Clock::time_point next_warning = now() + kLongWait;
  while (!all_told(statements) && !has_ended()) {
    waits_for_.store(first_absent(statements), std::memory_order_relaxed);
    accuse_who_left(mine, statements);
    if (now() >= deadline) accuse_absent(mine, statements);
    if (now() >= next_warning) {
      log(LogLevel::kWarning,
          fmt::format("call {} ({}) waits for {}", mine.call, mine.text, absent(statements)));
      next_warning = now() + kLongWait;
    }
    if (!has_ended()) wait_once(lock, std::min(deadline, next_warning), mine);
  }
  waits_for_.store(-1, std::memory_order_relaxed);
  if (!all_told(statements)) {
    lock.unlock();
    throw_verdict();
  }
  return ledger_.take(mine.call);
}

// The others have been told that this worker makes the call: if its caller wants to wait no longer, it is
// over for all of them.
void Epoch::wait_once(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, const Statement& mine) {
  if (!is_interruptible()) return links_->wait_once(lock, deadline);
  links_->wait_once(lock, std::min(deadline, now() + kInterruptInterval));
  lock.unlock();
  const auto give_up = [&](std::string_view reason) {
    accuse(
        {ErrorCode::kAborted, rank_, mine.call,
         fmt::format("{} gave up waiting in call {} ({}){}", name_of(rank_), mine.call, mine.text, reason)});
    await_verdict();
  };
  try {
    check_interrupt();
  } catch (const std::exception& error) {
    give_up(std::string(": ") + error.what());
    throw;
  } catch (...) {
    give_up("");
    throw;
  }
  lock.lock();
}

std::optional<Statement> Epoch::ask(int rank, milliseconds patience) {
  auto lock = links_->lock();
  Member& asked = member(rank);
  asked.answer.reset();
  tell(rank, Tell::kQuestion, {});
  links_->wait(lock, now() + patience,
               [&] { return asked.answer.has_value() || asked.state != State::kHere; });
  return asked.answer;
}

Sighting Epoch::sighting(int rank) const {
  const auto lock = links_->lock();
  return member(rank).sighting;
}

// One that left while it was inside will not complete it.
bool Epoch::takes_part_in(std::uint64_t call, int rank) const {
  const Whereabouts& where = member(rank).sighting.where;
  if (member(rank).state == State::kLeft && where.is_inside && where.calls <= call + 1) return false;
  if (where.calls > call) return true;
  const std::vector<RecordedCall> calls = recorded(rank);
  return !calls.empty() && calls.back().number >= call;
}

bool Epoch::takes_part(int rank) const {
  const auto lock = links_->lock();
  return takes_part_in(ledger_.calls() - 1, rank);
}

std::string Epoch::who_is_missing() const {
  const auto lock = links_->lock();
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) {
    if (is_other(r) && !takes_part_in(ledger_.calls() - 1, r)) ranks.push_back(r);
  }
  const int waits_for = waits_for_.load(std::memory_order_relaxed);
  if (ranks.empty() && waits_for >= 0) ranks.push_back(waits_for);
  return list(ranks);
}

std::string Epoch::absent(const CallLedger::Statements& statements) const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) {
    if (!statements[static_cast<std::size_t>(r)]) ranks.push_back(r);
  }
  return list(ranks);
}

std::string Epoch::list(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) text.append(text.empty() ? "" : ", ").append(describe(rank));
  return text;
}

std::string Epoch::names_of(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) text.append(text.empty() ? "" : ", ").append(name_of(rank));
  return text;
}

std::string Epoch::describe(int rank) const {
  if (rank == rank_) return name_of(rank);
  if (member(rank).state == State::kLeft) return name_of(rank).append(", which has closed the cluster");
  return name_of(rank).append(", which was last seen ").append(whereabouts_of(rank));
}

void Epoch::set_records(std::vector<std::span<const std::byte>> records) {
  const auto lock = links_->lock();
  records_ = std::move(records);
}

std::vector<RecordedCall> Epoch::recorded(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < records_.size() ? recorded_calls(records_[index]) : std::vector<RecordedCall>{};
}

// The one who judges says it aloud.
void Epoch::log_last_calls(int rank) const {
  const LogLevel level = judge() == rank_ ? LogLevel::kWarning : LogLevel::kInfo;
  const std::vector<RecordedCall> calls = recorded(rank);
  if (calls.empty() || !is_logged(level)) return;
  std::string text = "the last calls of " + name_of(rank);
  const std::size_t first = calls.size() - std::min(calls.size(), kLoggedCalls);
  for (std::size_t i = first; i < calls.size(); ++i) text.append("\n  ").append(to_string(calls[i]));
  log(level, text);
}

// As its recorder says, or as it told last, which may be half a second ago.
std::string Epoch::whereabouts_of(int rank) const {
  if (const std::vector<RecordedCall> calls = recorded(rank); !calls.empty()) {
    const RecordedCall& last = calls.back();
    return (last.state == RecordedState::kInside ? "in " : "after ") + to_string(last);
  }
  const Whereabouts& where = member(rank).sighting.where;
  if (!where.is_inside) return fmt::format("outside of calls, after {} of them", where.calls);
  const std::string call = fmt::format("in call {}", where.calls - 1);
  return where.waits_for < 0 ? call : fmt::format("{}, waiting for worker {}", call, where.waits_for);
}

// What it said before it left has come before its goodbye.
void Epoch::accuse_who_left(const Statement& mine, const CallLedger::Statements& statements) {
  for (int r = 0; r < size(); ++r) {
    if (statements[static_cast<std::size_t>(r)] || member(r).state != State::kLeft) continue;
    judge_or_report({ErrorCode::kAborted, r, mine.call,
                     fmt::format("{} closed the cluster after {} calls; {} is in call {} ({})", name_of(r),
                                 member(r).sighting.where.calls, name_of(rank_), mine.call, mine.text)});
    return;
  }
}

void Epoch::accuse_absent(const Statement& mine, const CallLedger::Statements& statements) {
  judge_or_report({ErrorCode::kDeadlineExceeded, first_absent(statements), mine.call,
                   fmt::format("call {} ({}) did not begin within the timeout of {}; waited for {}",
                               mine.call, mine.text, name_of(rank_), absent(statements))});
}

// Workers that make a call for the first time are told what this one calls, which may have made it before.
void Epoch::answer() {
  for (const CallLedger::Answer& answer : ledger_.answers()) {
    const Bytes bytes = to_bytes(answer.statement);
    for (const int rank : answer.to) tell(rank, Tell::kStatement, bytes);
  }
}

// ---- what others say

std::optional<int> Epoch::rank_of_seat(int seat) const {
  const auto found = std::ranges::find(group_.seats, seat);
  if (found == group_.seats.end()) return std::nullopt;
  return static_cast<int>(found - group_.seats.begin());
}

void Epoch::tell(int rank, Tell kind, std::span<const std::byte> payload, std::span<const int> descriptors) {
  if (member(rank).state != State::kHere) return;
  const int seat = group_.seats[static_cast<std::size_t>(rank)];
  links_->send(seat, group_.id, static_cast<std::uint16_t>(kind), payload, descriptors);
}

void Epoch::hear(int seat, Message&& message) {
  const std::optional<int> rank = rank_of_seat(seat);
  if (!rank) throw Error(ErrorCode::kInvalidArgument, "sent a message for a group that it is not in");
  const auto kind = static_cast<Tell>(message.kind);
  hear_from(*rank, kind, std::move(message));
}

void Epoch::hear_from(int rank, Tell kind, Message&& message) {
  Member& from = member(rank);
  switch (kind) {
    case Tell::kWhereabouts:
      from.sighting.where = whereabouts_from(message.payload);
      from.sighting.progressed = now();
      return;
    case Tell::kGoodbye:
      return leave_group(rank);
    case Tell::kStatement:
      return hear_statement(rank, statement_from(message.payload));
    case Tell::kQuestion:
      return tell(rank, Tell::kAnswer, to_bytes(ledger_.last_statement()));
    case Tell::kAnswer:
      from.answer = statement_from(message.payload);
      return links_->notify();
    case Tell::kAccusation:
      judge_or_report(verdict_from(message.payload));
      if (verdict_) tell(rank, Tell::kVerdict, to_bytes(*verdict_));
      return;
    case Tell::kVerdict:
      return set_verdict(verdict_from(message.payload));
    case Tell::kJoining:
      shrinking_.hear(rank, joining_from(message.payload, size()));
      return send_shrinking();
    case Tell::kProposal:
      shrinking_.hear(rank, proposal_from(message.payload, size()));
      return send_shrinking();
    case Tell::kAssent:
      shrinking_.hear(rank, assent_from(message.payload));
      return send_shrinking();
    case Tell::kDecision:
      return hear_decision(rank, decision_from(message.payload, size()));
    case Tell::kSetUp:
      if (from.set_up.size() >= kMostSetUps) break;
      from.set_up.push_back(std::move(message));
      return links_->notify();
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("sent a message of kind {} that was not expected",
                                                       static_cast<std::uint16_t>(kind)));
}

void Epoch::leave_group(int rank) {
  Member& leaver = member(rank);
  if (leaver.state != State::kHere) return;
  leaver.state = State::kLeft;
  leaver.sighting.has_left = true;
  report_again(rank);
  shrinking_.lose(rank, Standing::kDead);
  send_shrinking();
  links_->notify();
}

void Epoch::hear_statement(int rank, Statement statement) {
  const std::uint64_t call = statement.call;
  const bool is_refused = statement.is_refused;
  const std::string text = statement.text;
  ledger_.hear(rank, std::move(statement));
  answer();
  if (is_refused && ledger_.has_answered(call)) {
    judge_or_report(
        {ErrorCode::kAborted, rank, call, fmt::format("{} refused call {}: {}", name_of(rank), call, text)});
  }
  links_->notify();
}

void Epoch::lose(int seat, const Loss& loss) {
  const std::optional<int> rank = rank_of_seat(seat);
  if (!rank || member(*rank).state != State::kHere) return;
  Member& lost = member(*rank);
  lost.state = State::kGone;
  lost.gave_up = loss.kind == Loss::Kind::kGaveUp;
  const std::string text = lost.gave_up ? fmt::format("expelled: {} {}", name_of(*rank), loss.how)
                                        : fmt::format("{} is gone: {}; it was last seen {}", name_of(*rank),
                                                      loss.how, whereabouts_of(*rank));
  log_last_calls(*rank);
  judge_or_report({ErrorCode::kAborted, lost.gave_up ? rank_ : *rank, lost.sighting.where.calls, text});
  report_again(*rank);
  // One that was only lost and ends later may have gone on with others meanwhile: that it is dead says
  // nothing.
  shrinking_.lose(*rank, loss.kind == Loss::Kind::kEnded ? Standing::kDead : Standing::kLost);
  send_shrinking();
}

void Epoch::beat() {
  const Whereabouts where{ledger_.calls(), is_inside_.load(std::memory_order_relaxed),
                          beats_.load(std::memory_order_relaxed), waits_for_.load(std::memory_order_relaxed)};
  if (where == told_) return;
  told_ = where;
  const Bytes bytes = to_bytes(where);
  for (int r = 0; r < size(); ++r) tell(r, Tell::kWhereabouts, bytes);
}

// ---- the end

void Epoch::end() {
  has_ended_.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  if (wake_ >= 0) (void)!::write(wake_, &one, sizeof one);  // full: it is awake already
  links_->notify();
}

int Epoch::judge() const {
  int rank = 0;
  while (is_other(rank) && member(rank).state != State::kHere) ++rank;
  return rank;
}

void Epoch::set_verdict(const Verdict& verdict) {
  if (verdict_) return;
  verdict_ = verdict;
  log(LogLevel::kInfo, "the group has failed: " + verdict.text);
  // Everyone passes it on, so that it reaches all even if the one who gave it dies now.
  const Bytes bytes = to_bytes(verdict);
  for (int r = 0; r < size(); ++r) tell(r, Tell::kVerdict, bytes);
  end();
}

// As the judge: what came first counts. Otherwise the judge is told.
void Epoch::judge_or_report(const Verdict& reason) {
  end();
  if (verdict_) return;
  const int rank = judge();
  if (!is_other(rank)) {
    set_verdict(reason);
    return;
  }
  tell(rank, Tell::kAccusation, to_bytes(reason));
  reported_ = reason;
  reported_to_ = rank;
}

// The one who should have judged is no longer here.
void Epoch::report_again(int rank) {
  if (reported_ && reported_to_ == rank) judge_or_report(*std::exchange(reported_, std::nullopt));
}

void Epoch::accuse(const Verdict& reason) {
  const auto lock = links_->lock();
  judge_or_report(reason);
}

bool Epoch::ends_within(milliseconds patience) {
  auto lock = links_->lock();
  return links_->wait(lock, now() + patience, [&] { return has_ended(); });
}

bool Epoch::await_verdict() {
  auto lock = links_->lock();
  return links_->wait(lock, now() + kVerdictPatience, [&] { return verdict_.has_value(); });
}

void Epoch::throw_verdict() {
  await_verdict();
  const auto lock = links_->lock();
  if (verdict_) throw Error(verdict_->code, verdict_->text);
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("cut off from {}: the group has failed, and it does not say why", name_of(judge())));
}

}  // namespace onesum::cluster
