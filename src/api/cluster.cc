#include <algorithm>

#include <fmt/format.h>

#include <onesum/cluster.h>
#include <onesum/error.h>

#include "api/cluster_state.h"
#include "api/worker_devices.h"

namespace onesum {
namespace {

// Names of devices, no memory; more than this is a slip.
constexpr std::int64_t kMaxEmbeddedDevices = 65536;

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

int Cluster::rank() const noexcept { return 0; }
int Cluster::size() const noexcept { return static_cast<int>(state_->workers.size()); }
std::span<const Device> Cluster::devices() const noexcept { return state_->devices; }

}  // namespace onesum
