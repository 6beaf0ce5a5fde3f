#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <onesum/cluster.h>
#include <onesum/error.h>

#include "api/cluster_state.h"
#include "api/join.h"
#include "api/worker_devices.h"
#include "base/config.h"
#include "cluster/environment.h"

namespace onesum {
namespace {

// Names of devices, no memory; more than this is a slip.
constexpr std::int64_t kMaxEmbeddedDevices = 65536;

constexpr std::chrono::minutes kBarrierTimeout{30};

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
  if (invitation.size == 1) return local();
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
  has_joined = true;
  joined = state;
  return Cluster(std::move(state));
}

void Cluster::barrier() {
  const Clock::time_point deadline = now() + kBarrierTimeout;
  const cluster::Sequence::Turn turn(state_->sequence, deadline);
  if (state_->session) api::Session::Call(*state_->session, 0, deadline).barrier();
}

void Cluster::close() noexcept {
  if (state_->session) state_->session->close();
}

int Cluster::rank() const noexcept { return state_->session ? state_->session->rank() : 0; }
int Cluster::size() const noexcept { return static_cast<int>(state_->workers.size()); }
std::span<const Device> Cluster::workers() const noexcept { return state_->workers; }
std::span<const Device> Cluster::devices() const noexcept { return state_->devices; }

}  // namespace onesum
