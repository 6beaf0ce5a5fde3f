#include "api/replica_run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <utility>

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/error.h>

#include "api/replica_context.h"
#include "base/clock.h"

namespace onesum::api {
namespace {

constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(30);

constexpr std::chrono::milliseconds kMaxTimeout =
    std::chrono::years(1);  // a deadline that the clock can express

std::chrono::milliseconds timeout_of(const ReplicaCall& call) {
  return std::min(call.options.timeout.value_or(kDefaultTimeout), kMaxTimeout);
}

std::string type_of_current_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an exception";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return name ? name.get() : type->name();
}

// "std::runtime_error: boom"; inside a handler only.
std::string describe_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.code()), error.what());
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", type_of_current_exception(), error.what());
  } catch (...) {
    return type_of_current_exception();
  }
}

std::string count_of_calls(std::size_t count) {
  return fmt::format("{} call{}", count, count == 1 ? "" : "s");
}

}  // namespace

ReplicaRun::ReplicaRun(MirroredStrategy& strategy, const ReplicaRun* enclosing)
    : strategy_(&strategy),
      enclosing_(enclosing),
      replicas_(static_cast<std::size_t>(strategy.num_replicas())) {}

bool ReplicaRun::is_inside(const MirroredStrategy& strategy) const noexcept {
  for (const ReplicaRun* run = this; run != nullptr; run = run->enclosing_) {
    if (run->strategy_ == &strategy) return true;
  }
  return false;
}

void ReplicaRun::run_replica(ReplicaContext& replica,
                             const std::function<void(ReplicaContext&)>& fn) noexcept {
  const ContextGuard in_replica_context({.replica = &replica, .run = this, .scope = nullptr});
  try {
    fn(replica);
    end(replica.replica_id(), "returned", nullptr);
  } catch (...) {
    end(replica.replica_id(), "threw " + describe_current_exception(), std::current_exception());
  }
}

void ReplicaRun::end(int replica, std::string how, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  Replica& me = replicas_[replica];
  me.has_ended = true;
  me.end = std::move(how);
  me.error = std::move(error);
  if (num_arrived_ > 0) fail_if_one_ended();
}

void ReplicaRun::meet(int replica, ReplicaCall& call) {
  Lock lock(mutex_);
  Replica& me = replicas_[replica];
  me.call = &call;
  ++me.num_calls;
  ++num_arrived_;
  fail_if_one_ended();
  fail_if_calls_differ();
  if (!failure_ && has_arrived_all()) {
    carry_out(lock);
  } else {
    wait(lock, replica, call);
  }
  if (!call.is_done) throw_aborted(replica, call);
  if (call.error) std::rethrow_exception(call.error);
}

void ReplicaRun::carry_out(Lock& lock) {
  std::vector<ReplicaCall*> calls;
  calls.reserve(replicas_.size());
  for (const Replica& replica : replicas_) calls.push_back(replica.call);

  lock.unlock();
  std::exception_ptr error;
  try {
    const ContextGuard in_cross_replica_context({.replica = nullptr, .run = this, .scope = strategy_});
    execute(*strategy_, calls);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();

  for (Replica& replica : replicas_) {
    replica.call->error = error;
    replica.call->is_done = true;
    replica.call = nullptr;
  }
  last_error_ = std::move(error);
  num_arrived_ = 0;
  changed_.notify_all();
}

void ReplicaRun::wait(Lock& lock, int replica, const ReplicaCall& call) {
  const auto is_over = [&] { return call.is_done || failure_; };
  const auto can_end_without_time = [&] { return is_over() || has_arrived_all(); };
  if (!changed_.wait_until(lock, now() + timeout_of(call), can_end_without_time)) {
    const std::string missing = missing_replicas();
    const std::string here = fmt::format("waited {} ms in {}", timeout_of(call).count(), describe(call));
    fail(fmt::format("replica {} {} for {}", replica, here, missing));
    replicas_[replica].call = nullptr;
    throw Error(ErrorCode::kDeadlineExceeded,
                fmt::format("replica {} {}, but {} did not make that call", replica, here, missing));
  }
  changed_.wait(lock, is_over);  // however long a call takes that all have made
}

void ReplicaRun::fail(std::string text, bool is_mismatch) {
  failure_ = Failure{std::move(text), is_mismatch};
  changed_.notify_all();
}

void ReplicaRun::fail_if_one_ended() {
  if (failure_) return;
  const auto gone = std::ranges::find(replicas_, true, &Replica::has_ended);
  if (gone == replicas_.end()) return;
  fail(fmt::format("replica {} {} after {}", gone - replicas_.begin(), gone->end,
                   count_of_calls(gone->num_calls)));
}

// Compares when all have arrived, so that the message does not depend on who came first. It names the first
// replica that differs from what most of them do.
void ReplicaRun::fail_if_calls_differ() {
  if (failure_ || !has_arrived_all()) return;
  const auto same_as = [](const Replica& other) {
    return [&other](const Replica& replica) { return is_same_call(*replica.call, *other.call); };
  };
  if (std::ranges::all_of(replicas_, same_as(replicas_.front()))) return;
  const auto common = std::ranges::max_element(replicas_, {}, [&](const Replica& replica) {
    return std::ranges::count_if(replicas_, same_as(replica));
  });
  const auto odd = std::ranges::find_if_not(replicas_, same_as(*common));
  fail(fmt::format(
           "replica {} called {} where replica {} called {} (call {} of each); all replicas must make the "
           "same calls in the same order",
           odd - replicas_.begin(), describe_beside(*odd->call, *common->call), common - replicas_.begin(),
           describe_beside(*common->call, *odd->call), common->num_calls),
       true);
}

void ReplicaRun::throw_aborted(int replica, const ReplicaCall& call) {
  Replica& me = replicas_[replica];
  me.call = nullptr;
  me.was_aborted = true;
  if (failure_->is_mismatch) throw Error(ErrorCode::kAborted, failure_->text);
  throw Error(ErrorCode::kAborted, fmt::format("replica {} waits in {}, its call {}, but {}", replica,
                                               describe(call), me.num_calls, failure_->text));
}

std::string ReplicaRun::missing_replicas() const {
  std::vector<std::ptrdiff_t> missing;
  for (const Replica& replica : replicas_) {
    if (replica.call == nullptr) missing.push_back(&replica - replicas_.data());
  }
  return fmt::format("replica{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
}

void ReplicaRun::rethrow() const {
  const auto failed_itself = [](const Replica& replica) { return replica.error && !replica.was_aborted; };
  auto failed = std::ranges::find_if(replicas_, failed_itself);
  if (failed == replicas_.end()) {
    failed = std::ranges::find_if(replicas_, [](const Replica& replica) { return bool(replica.error); });
  }
  if (failed != replicas_.end()) std::rethrow_exception(failed->error);
}

}  // namespace onesum::api
