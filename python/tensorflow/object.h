// An object of the library, such as a MultiWorkerAllReduce, and the sequence that its calls belong to: a
// resource of TensorFlow. Calls are made in the sequence's turns.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tensorflow/core/framework/resource_base.h>
#include <tensorflow/core/platform/refcount.h>

#include <onesum/onesum.h>

#include "sequence.h"

namespace onesum::tf_bridge {

class Object : public tensorflow::ResourceBase {
 public:
  Object(std::unique_ptr<CrossDeviceOps> ops, tensorflow::core::RefCountPtr<Sequence> sequence);

  std::string DebugString() const override { return "onesum object on " + sequence_->DebugString(); }
  CrossDeviceOps& ops() const noexcept { return *ops_; }
  Sequence& sequence() const noexcept { return *sequence_; }

  // All memory is the host's: the library knows this process's replica i as being on CPU:i, or, where it has
  // workers embedded in this process, on their devices, worker by worker. Throws invalid_argument where they
  // have fewer.
  std::vector<Device> replica_devices(std::size_t replicas) const;
  // Where this process gets a result that is wanted once.
  Destination here() const;

 private:
  const std::unique_ptr<CrossDeviceOps> ops_;
  const tensorflow::core::RefCountPtr<Sequence> sequence_;
};

}  // namespace onesum::tf_bridge
