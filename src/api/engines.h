// The engines of this process: the composition root.
//
// engines.cc is the only file that names concrete engines. The engines are created together, on first use,
// from the settings of the environment (base/config.h), and are never destroyed: tensors in static objects
// return their memory when the process ends, in an order that nobody controls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <onesum/device.h>

#include "base/clock.h"
#include "base/config.h"
#include "cluster/connection.h"
#include "engine/device.h"
#include "engine/transport.h"

namespace onesum::api {

// The engine for CPU memory. Throws what is wrong with the settings (invalid_argument) until they can be
// used.
engine::DeviceEngine& host_engine();

// What is to carry messages between this rank and the others.
struct TransportRequest {
  int rank = 0;
  TransportChoice choice = TransportChoice::kAuto;
  std::vector<bool> is_near;  // by rank: on this machine
  std::string faults;         // on purpose (engine/faulty/faults.h); none: empty
  Clock::time_point deadline;
};

struct MadeTransport {
  std::unique_ptr<engine::Transport> transport;
  int wake = -1;  // the transport's: whoever writes to this eventfd wakes who sleeps on the transport
};

// All workers make theirs at the same time; what they need of each other travels over the connections, by
// rank. Throws invalid_argument where the choice does not reach all of them.
MadeTransport make_transport(const TransportRequest& request, std::vector<cluster::Connection>& connections);

// The engine that serves a device, by its type (absent: CPU). Throws unavailable for a type without engine.
engine::DeviceEngine& engine_of(const Device& device);

}  // namespace onesum::api
