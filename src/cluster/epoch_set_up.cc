// What the members of an epoch tell each other before the first call: the part of epoch.h that sets up.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/interrupt.h"
#include "cluster/epoch.h"

namespace onesum::cluster {
namespace {

// Waits (locked) until `is_so` or the deadline. Throws, without the lock, what a caller throws that wants to
// wait no longer.
template <class Predicate>
void wait_interruptibly(Links& links, std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
                        const Predicate& is_so) {
  while (is_interruptible() && now() + kInterruptInterval < deadline) {
    if (links.wait(lock, now() + kInterruptInterval, is_so)) return;
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  links.wait(lock, deadline, is_so);
}

}  // namespace

void Epoch::send_set_up(int rank, std::span<const std::byte> payload, std::span<const int> descriptors) {
  const auto lock = links_->lock();
  tell(rank, Tell::kSetUp, payload, descriptors);
}

void Epoch::meet(Epoch& parent, Clock::time_point deadline) {
  for (int other = 0; other < size(); ++other) {
    if (other != rank_) send_set_up(other, {});
  }
  const auto has_closed = [&](int other) {
    const std::optional<int> there = parent.rank_of_seat(group_.seats[static_cast<std::size_t>(other)]);
    return there && parent.member(*there).state == State::kLeft;
  };
  auto lock = links_->lock();
  std::vector<int> missing;
  wait_interruptibly(*links_, lock, deadline, [&] {
    missing.clear();
    for (int other = 0; other < size(); ++other) {
      if (other != rank_ && member(other).set_up.empty()) missing.push_back(other);
    }
    const auto is_gone = [&](int other) { return member(other).state != State::kHere || has_closed(other); };
    return missing.empty() || std::ranges::any_of(missing, is_gone) || has_ended() || parent.has_ended();
  });
  for (int other = 0; other < size(); ++other) {
    if (member(other).state != State::kLeft && !has_closed(other)) continue;
    throw Error(ErrorCode::kAborted,
                fmt::format("{} {} before its group with {} was complete", name_of(other),
                            has_closed(other) ? "closed the cluster" : "gave up", name_of(rank_)));
  }
  if (missing.empty()) {
    for (int other = 0; other < size(); ++other) {
      if (other != rank_) member(other).set_up.pop_front();
    }
    return;
  }
  lock.unlock();
  check();
  parent.check();
  throw Error(ErrorCode::kDeadlineExceeded,
              fmt::format("{} did not come in time; {} waited for its group to be complete",
                          names_of(missing), name_of(rank_)));
}

Message Epoch::receive_set_up(int rank, Clock::time_point deadline) {
  auto lock = links_->lock();
  Member& from = member(rank);
  wait_interruptibly(*links_, lock, deadline,
                     [&] { return !from.set_up.empty() || from.state == State::kLeft || has_ended(); });
  if (!from.set_up.empty()) {
    Message message = std::move(from.set_up.front());
    from.set_up.pop_front();
    return message;
  }
  if (from.state == State::kLeft) {
    judge_or_report({ErrorCode::kAborted, rank, 0, name_of(rank) + " closed the cluster before any call"});
  } else if (!has_ended()) {
    judge_or_report({ErrorCode::kDeadlineExceeded, rank, 0,
                     fmt::format("{} did not hear of {} in time, while they were to get ready for calls",
                                 name_of(rank_), name_of(rank))});
  }
  lock.unlock();
  throw_verdict();
}

}  // namespace onesum::cluster
