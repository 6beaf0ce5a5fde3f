#include <algorithm>

#include <onesum/cluster.h>
#include <onesum/error.h>

#include "api/cluster_state.h"

namespace onesum {

Cluster Cluster::local(const std::vector<std::string>& devices) {
  auto state = std::make_shared<State>();
  state->defaults = Device().canonical();
  for (const std::string& text : devices) {
    const Device device = Device(text).canonical(state->defaults);
    if (std::find(state->devices.begin(), state->devices.end(), device) != state->devices.end()) {
      throw Error(ErrorCode::kInvalidArgument, "the cluster's devices name " + device.to_string() + " twice");
    }
    state->devices.push_back(device);
  }
  return Cluster(std::move(state));
}

int Cluster::rank() const noexcept { return 0; }
int Cluster::size() const noexcept { return 1; }
std::span<const Device> Cluster::devices() const noexcept { return state_->devices; }

}  // namespace onesum
