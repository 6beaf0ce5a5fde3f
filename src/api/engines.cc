#include "api/engines.h"

#include <memory>
#include <string>

#include <onesum/error.h>

#include "base/config.h"
#include "engine/host/host_engine.h"

namespace onesum::api {
namespace {

engine::HostOptions host_options(const Config& config) {
  engine::HostOptions options;
  if (config.threads) options.threads = *config.threads;
  options.pool_limit_bytes = config.pool_bytes;
  return options;
}

}  // namespace

engine::DeviceEngine& host_engine() {
  // Deliberately not destroyed (see the header); the static pointer keeps it reachable. If creating it
  // throws, the next call tries again.
  static engine::DeviceEngine* const host =
      engine::make_host_engine(host_options(process_config())).release();
  return *host;
}

engine::DeviceEngine& engine_of(const Device& device) {
  if (device.type() && *device.type() != "CPU") {
    const std::string kind = *device.type() == "GPU" ? "GPUs yet" : "devices of type " + *device.type();
    throw Error(ErrorCode::kUnavailable, "device " + device.to_string() + ": this build has no engine for " +
                                             kind + "; expected a CPU");
  }
  return host_engine();
}

}  // namespace onesum::api
