#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/cluster.h>
#include <onesum/error.h>

#include "api/cluster_state.h"
#include "api/community.h"
#include "api/engines.h"
#include "api/join.h"
#include "api/worker_devices.h"
#include "base/config.h"
#include "cluster/environment.h"

namespace onesum {
namespace {

// Names of devices, no memory; more than this is a slip.
constexpr std::int64_t kMaxEmbeddedDevices = 65536;

constexpr std::chrono::milliseconds kTimeout = std::chrono::minutes(30);  // as of other calls
constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 365);

void check_size(std::size_t workers, int devices_per_worker) {
  if (devices_per_worker < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Cluster::embedded: {} devices for each worker; expected at least one",
                            devices_per_worker));
  }
  const std::int64_t devices = static_cast<std::int64_t>(workers) * devices_per_worker;
  if (devices > kMaxEmbeddedDevices) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Cluster::embedded: {} workers with {} devices each; expected at most {} devices",
                            workers, devices_per_worker, kMaxEmbeddedDevices));
  }
}

std::vector<int> all_ranks(const Cluster::State& state) {
  std::vector<int> ranks(state.workers.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// A cluster of its own with some of the workers of this process, the first of them as rank 0.
std::shared_ptr<Cluster::State> workers_of(const Cluster::State& state, std::span<const int> ranks,
                                           std::string_view call) {
  auto some = std::make_shared<Cluster::State>();
  for (const int rank : ranks) {
    const bool is_known = rank >= 0 && static_cast<std::size_t>(rank) < state.workers.size();
    const Device* worker = is_known ? &state.workers[static_cast<std::size_t>(rank)] : nullptr;
    if (worker == nullptr || std::ranges::find(some->workers, *worker) != some->workers.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: ranks {{{}}}; expected different ones of 0 to {}", call,
                              fmt::join(ranks, ", "), state.workers.size() - 1));
    }
    some->workers.push_back(*worker);
    if (!state.hosts.empty()) some->hosts.push_back(worker->host());
    if (!state.machines.empty()) some->machines.push_back(state.machines[static_cast<std::size_t>(rank)]);
    const auto is_its = [&](const Device& device) { return api::worker_of(device) == *worker; };
    std::ranges::copy_if(state.devices, std::back_inserter(some->devices), is_its);
    std::ranges::copy_if(state.gpus, std::back_inserter(some->gpus), is_its);
  }
  if (ranks.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: no ranks; expected those of the new cluster's workers", call));
  }
  some->defaults = state.hosts.empty() ? state.defaults : some->hosts.front();
  return some;
}

// This worker in another group.
std::shared_ptr<Cluster::State> with_session(const Cluster::State& state,
                                             std::unique_ptr<api::Session> session) {
  auto other = std::make_shared<Cluster::State>();
  other->defaults = state.defaults;
  other->workers = session->workers();
  for (const Device& worker : other->workers) other->hosts.push_back(worker.host());
  other->machines = session->machines();
  other->session = std::move(session);
  return other;
}

}  // namespace

Cluster Cluster::local(const std::vector<std::string>& devices) {
  auto state = std::make_shared<State>();
  state->defaults = Device().canonical();
  state->workers.push_back(api::worker_of(state->defaults));
  for (const std::string& text : devices) {
    const Device device = Device(text).canonical(state->defaults);
    if (std::find(state->devices.begin(), state->devices.end(), device) != state->devices.end()) {
      throw Error(ErrorCode::kInvalidArgument, "the cluster's devices name " + device.to_string() + " twice");
    }
    state->devices.push_back(device);
  }
  return Cluster(std::move(state));
}

Cluster Cluster::embedded(const std::vector<std::string>& worker_devices, int devices_per_worker,
                          std::string_view type) {
  auto state = std::make_shared<State>();
  state->workers = api::parse_workers(worker_devices, "Cluster::embedded");
  check_size(state->workers.size(), devices_per_worker);
  for (const Device& worker : state->workers) {
    state->hosts.push_back(worker.host());
    for (int index = 0; index < devices_per_worker; ++index) {
      const Device device(fmt::format("/device:{}:{}", type, index));
      state->devices.push_back(device.merged_over(worker));
    }
  }
  state->defaults = state->hosts.front();
  return Cluster(std::move(state));
}

Cluster Cluster::from_environment() {
  const cluster::Invitation invitation = cluster::process_invitation();
  if (invitation.size == 1) {
    auto alone = std::make_shared<State>();
    alone->workers = invitation.workers;
    alone->defaults = alone->workers.front().host();
    return Cluster(std::move(alone));
  }
  // A process joins its cluster once: this is where it is kept, for as long as somebody uses it.
  static std::mutex mutex;
  static std::weak_ptr<State> joined;
  static bool has_joined = false;
  const std::lock_guard lock(mutex);
  if (auto state = joined.lock()) return Cluster(std::move(state));
  if (has_joined) {
    throw Error(ErrorCode::kInvalidArgument,
                "Cluster::from_environment: this process has left the cluster that it had joined, and cannot "
                "join again; keep a Cluster for as long as it is needed");
  }
  auto state = std::make_shared<State>();
  state->workers = invitation.workers;
  for (const Device& worker : state->workers) state->hosts.push_back(worker.host());
  state->defaults = state->hosts[static_cast<std::size_t>(invitation.rank)];
  state->session = api::join(invitation, process_config());
  state->machines = state->session->machines();
  has_joined = true;
  joined = state;
  return Cluster(std::move(state));
}

void Cluster::barrier(std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point deadline = now() + std::min(timeout.value_or(kTimeout), kLongestTimeout);
  const cluster::Sequence::Turn turn(state_->sequence, deadline);
  if (state_->session) {
    api::Session::Call(*state_->session, 0, deadline)
        .agree({.subject = cluster::Subject::kBarrier, .text = "barrier"});
  }
}

Cluster Cluster::shrink(std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point deadline = now() + std::min(timeout.value_or(kTimeout), kLongestTimeout);
  const cluster::Sequence::Turn turn(state_->sequence, deadline);
  if (!state_->session) return Cluster(workers_of(*state_, all_ranks(*state_), "shrink"));
  return Cluster(with_session(*state_, api::shrink(*state_->session, deadline)));
}

Cluster Cluster::duplicate() {
  const Clock::time_point deadline = now() + kTimeout;
  const cluster::Sequence::Turn turn(state_->sequence, deadline);
  if (!state_->session) return Cluster(workers_of(*state_, all_ranks(*state_), "duplicate"));
  return Cluster(with_session(*state_, api::duplicate(*state_->session, deadline)));
}

Cluster Cluster::split(std::span<const int> ranks) {
  const Clock::time_point deadline = now() + kTimeout;
  const cluster::Sequence::Turn turn(state_->sequence, deadline);
  if (!state_->session) return Cluster(workers_of(*state_, ranks, "split"));
  return Cluster(with_session(*state_, api::split(*state_->session, ranks, deadline)));
}

Cluster Cluster::group(std::span<const int> ranks, std::string_view name,
                       std::optional<std::chrono::milliseconds> timeout) {
  if (!state_->session) return Cluster(workers_of(*state_, ranks, "group"));
  const Clock::time_point deadline = now() + std::min(timeout.value_or(kTimeout), kLongestTimeout);
  const api::GroupName full_name{std::string(name), state_->next_group(ranks, name)};
  return Cluster(with_session(*state_, api::group(*state_->session, ranks, full_name, deadline)));
}

std::uint64_t Cluster::State::next_group(std::span<const int> ranks, std::string_view name) {
  const std::lock_guard lock(groups_mutex_);
  return groups_[{{ranks.begin(), ranks.end()}, std::string(name)}]++;
}

void Cluster::close() noexcept {
  if (state_->session) state_->session->close();
}

std::uint64_t Cluster::completed_calls() const noexcept {
  return state_->session ? state_->session->completed_calls() : 0;
}
std::uint64_t Cluster::completed_by_all() const noexcept {
  return state_->session ? state_->session->completed_by_all() : 0;
}

int Cluster::rank() const noexcept { return state_->session ? state_->session->rank() : 0; }
int Cluster::size() const noexcept { return static_cast<int>(state_->workers.size()); }
std::span<const Device> Cluster::workers() const noexcept { return state_->workers; }
std::span<const Device> Cluster::devices() const noexcept { return state_->devices; }

std::function<std::string(const Device&)> Cluster::State::why_not_served() const {
  if (!session) return api::why_not_served;
  return [own = api::worker_of(defaults)](const Device& device) {
    return api::worker_of(device) == own ? api::why_not_served(device) : std::string();
  };
}

}  // namespace onesum
