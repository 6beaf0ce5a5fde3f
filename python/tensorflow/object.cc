#include "object.h"

#include <utility>

namespace onesum::tf_bridge {

Object::Object(std::unique_ptr<CrossDeviceOps> ops, tensorflow::core::RefCountPtr<Sequence> sequence)
    : ops_(std::move(ops)), sequence_(std::move(sequence)) {}

std::vector<Device> Object::replica_devices(std::size_t replicas) const {
  const std::span<const Device> embedded = sequence_->cluster().devices();
  if (!embedded.empty() && replicas > embedded.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                "the value has " + std::to_string(replicas) +
                    " replicas, and the workers embedded in this process have " +
                    std::to_string(embedded.size()) +
                    " devices; give MultiWorkerAllReduce as many workers times num_gpus_per_worker as the "
                    "strategy has replicas");
  }
  std::vector<Device> devices;
  for (std::size_t i = 0; i < replicas; ++i) {
    devices.push_back(embedded.empty() ? Device("CPU:" + std::to_string(i)) : embedded[i]);
  }
  return devices;
}

Destination Object::here() const { return replica_devices(1)[0].to_string(); }

}  // namespace onesum::tf_bridge
