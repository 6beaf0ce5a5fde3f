// The engines of this process: the composition root.
//
// engines.cc is the only file that names concrete engines. The engines are created together, on first use,
// from the settings of the environment (base/config.h), and are never destroyed: tensors in static objects
// return their memory when the process ends, in an order that nobody controls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <onesum/device.h>

#include "base/clock.h"
#include "base/config.h"
#include "cluster/epoch.h"
#include "engine/device.h"
#include "engine/gpu.h"
#include "engine/transport.h"

namespace onesum::api {

// The engine for CPU memory. Throws what is wrong with the settings (invalid_argument) until they can be
// used.
engine::ThreadedEngine& host_engine();

// The GPUs of this process, looked for once, when somebody asks.
const engine::GpuSearch& gpus();

// What is to carry messages between this rank and the others.
struct TransportRequest {
  TransportChoice choice = TransportChoice::kAuto;
  bool checksums = false;  // of messages over the network
  std::size_t outbox_bytes = 0;
  std::vector<bool> is_near;  // by rank: on this machine
  bool is_spread = false;     // over several machines
  bool is_crowded = false;    // more workers of this machine than cores
  std::string faults;         // on purpose (engine/faulty/faults.h); none: empty
  std::uint32_t life = 0;     // of the group: faults name it as their epoch
  Clock::time_point deadline;
};

struct MadeTransport {
  std::unique_ptr<engine::Transport> transport;
  // What follows is the transport's.
  int wake = -1;               // whoever writes to this eventfd wakes who sleeps on the transport
  std::span<std::byte> notes;  // memory that others on this machine can read, even when this worker is dead
  std::vector<std::span<const std::byte>> notes_of;  // by rank: theirs; of workers elsewhere there are none
};

// All workers of the epoch make theirs at the same time, before its first call. Throws invalid_argument where
// the choice does not reach all of them, and the epoch's verdict if it ends meanwhile.
MadeTransport make_transport(const TransportRequest& request, cluster::Epoch& epoch);

// The engine that serves a device, by its type (absent: CPU) and, of GPUs, its index (absent: 0). Throws
// unavailable for a type without engine, and for a GPU that is not there, saying why.
engine::DeviceEngine& engine_of(const Device& device);

// Why there is no engine for a device; empty: there is one.
std::string why_not_served(const Device& device);

// As engine_of; null: the host's threads work for it.
engine::QueuedEngine* queued_engine_of(const Device& device);

// Those of several devices; of others, for which `is_here` says no, null. Empty: there is none.
std::vector<engine::QueuedEngine*> queued_engines_of(std::span<const Device> devices,
                                                     const std::function<bool(std::size_t)>& is_here);

}  // namespace onesum::api
