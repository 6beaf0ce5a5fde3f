// How the survivors of an epoch go on: the part of epoch.h that carries shrinking.h's messages.
#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/interrupt.h"
#include "base/log.h"
#include "cluster/epoch.h"

namespace onesum::cluster {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLongWait{10};
// That a worker is dead and not only silent may be heard a moment later.
constexpr std::chrono::seconds kProofPatience{1};
// A decision that is on its way is awaited for so much longer than the deadline.
constexpr std::chrono::seconds kDecisionGrace{5};
// Those who want to go on have some time to say so, whatever the deadline is.
constexpr std::chrono::seconds kLeastPatience{1};
constexpr milliseconds kShrinkingInterval{50};
constexpr milliseconds kFlushInterval{1};
// What was decided must be with the kernel before anybody goes on.
constexpr std::chrono::seconds kFlushPatience{5};

constexpr Tell kind_of(const Joining& /*message*/) { return Tell::kJoining; }
constexpr Tell kind_of(const Proposal& /*message*/) { return Tell::kProposal; }
constexpr Tell kind_of(const Assent& /*message*/) { return Tell::kAssent; }
constexpr Tell kind_of(const Decision& /*message*/) { return Tell::kDecision; }

}  // namespace

void Epoch::send_shrinking() {
  for (const Shrinking::Outgoing& outgoing : shrinking_.take_outgoing()) {
    std::visit([&](const auto& message) { tell(outgoing.rank, kind_of(message), to_bytes(message)); },
               outgoing.message);
  }
  links_->notify();
}

void Epoch::hear_decision(int rank, const Decision& decision) {
  const std::optional<Proposal>& mine = shrinking_.decided();
  if (!mine || mine->group == decision.what.group) {
    shrinking_.hear(rank, decision);
    send_shrinking();
    return;
  }
  // It counts on this worker, which has gone on with others.
  if (std::ranges::find(decision.what.members, rank_) == decision.what.members.end()) return;
  links_->send(group_.seats[static_cast<std::size_t>(rank)], decision.what.group,
               static_cast<std::uint16_t>(Tell::kGoodbye), {});
}

Epoch::Successor Epoch::shrink(std::uint64_t completed, Clock::time_point deadline) {
  auto lock = links_->lock();
  if (is_closed_) throw Error(verdict_->code, verdict_->text);
  if (has_taken_decision_) {
    throw Error(ErrorCode::kInvalidArgument,
                "shrink: this cluster was shrunk before; use the Cluster that came of it");
  }
  shrinking_.join(completed);
  send_shrinking();
  await_decision(lock, std::max(deadline, now() + kLeastPatience));
  const Proposal& decided = *shrinking_.decided();
  if (std::ranges::find(decided.members, rank_) == decided.members.end())
    throw Error(ErrorCode::kAborted,
                "expelled: the group goes on without this worker: " + names_of(decided.members));
  has_taken_decision_ = true;
  // Nobody may be left behind if this worker dies now.
  const Clock::time_point patience = now() + kFlushPatience;
  const auto is_flushed = [&](int seat) { return links_->is_flushed(seat); };
  while (!std::ranges::all_of(group_.seats, is_flushed) && now() < patience)
    links_->wait_once(lock, now() + kFlushInterval);
  Successor successor;
  successor.group.id = decided.group;
  successor.completed = decided.completed;
  for (const int member : decided.members) {
    successor.group.seats.push_back(group_.seats[static_cast<std::size_t>(member)]);
    successor.group.names.push_back(group_.names[static_cast<std::size_t>(member)]);
  }
  return successor;
}

void Epoch::await_decision(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
  const Clock::time_point began = now();
  Clock::time_point last_enough = began;  // when those who can reach each other were still a majority
  Clock::time_point next_warning = began + kLongWait;
  while (!shrinking_.decided()) {
    if (is_closed_) throw Error(verdict_->code, verdict_->text);
    give_up_hung(began);
    if (now() >= deadline) give_up_absent();
    if (now() >= deadline + kDecisionGrace)
      throw Error(ErrorCode::kDeadlineExceeded, "shrink waited in vain for " + waited_for());
    if (!shrinking_.lacks_majority()) last_enough = now();
    if (now() - last_enough > kProofPatience) fail_as_cut_off();
    if (now() >= next_warning) {
      next_warning = now() + kLongWait;
      log(LogLevel::kWarning, "shrink waits for " + waited_for());
    }
    if (!shrinking_.decided()) links_->wait_once(lock, now() + kShrinkingInterval);
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
}

std::string Epoch::waited_for() const {
  if (const std::vector<int> absent = shrinking_.awaited(); !absent.empty()) return list(absent);
  if (shrinking_.leader() != rank_) return "the decision of " + describe(shrinking_.leader());
  return "the assent of " + list(shrinking_.without_assent());
}

// The deadline has passed: those who have come go on, if they are enough.
void Epoch::give_up_absent() {
  const std::vector<int> absent = shrinking_.awaited();
  for (const int rank : absent) shrinking_.give_up(rank);
  send_shrinking();
  if (!absent.empty() && shrinking_.lacks_majority() && !shrinking_.decided())
    throw Error(ErrorCode::kDeadlineExceeded, "shrink waited in vain for " + list(absent));
}

// The group may go on elsewhere. Whoever is left here and could do better must not wait for this worker.
void Epoch::fail_as_cut_off() {
  say_goodbye();
  std::vector<int> lost;
  std::vector<int> gave_up;
  for (int r = 0; r < size(); ++r) {
    if (shrinking_.standings()[static_cast<std::size_t>(r)] != Standing::kLost) continue;
    lost.push_back(r);
    if (member(r).gave_up) gave_up.push_back(r);
  }
  if (!gave_up.empty()) {
    throw Error(ErrorCode::kAborted, "expelled: given up, and perhaps left behind, by " + names_of(gave_up));
  }
  throw Error(ErrorCode::kUnavailable,
              fmt::format("cut off from {}: they may live, and those who can reach each other here are no "
                          "majority of the {} workers that would have to agree",
                          names_of(lost), size()));
}

// One that is inside a call of an epoch that has ended should have left it long ago.
void Epoch::give_up_hung(Clock::time_point began) {
  for (const int rank : shrinking_.awaited()) {
    const Sighting& sighting = member(rank).sighting;
    if (!sighting.where.is_inside || now() - std::max(began, sighting.progressed) < links_->silence())
      continue;
    log(LogLevel::kWarning, "shrink goes on without " + describe(rank));
    shrinking_.give_up(rank);
  }
  send_shrinking();
}

}  // namespace onesum::cluster
