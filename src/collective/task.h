// What an algorithm is asked to do with one pack, and among whom. Devices are small numbers; nothing here has
// a size or an address.
#pragma once

#include <cstdint>
#include <vector>

#include "base/combine.h"
#include "base/element.h"
#include "plan/plan.h"

namespace onesum::collective {

struct Source {
  std::int32_t device = 0;
  Element element = Element::kFloat32;
  friend bool operator==(const Source&, const Source&) = default;
};

struct Target {
  std::int32_t device = 0;
  std::int32_t in_place_of = -1;  // the replica whose memory the result replaces; -1: memory of its own
  friend bool operator==(const Target&, const Target&) = default;
};

struct Task {
  plan::Contract contract = plan::Contract::kReduce;
  Element accumulator = Element::kFloat32;
  Element output = Element::kFloat32;
  std::int64_t divisor = 1;
  std::vector<Source> replicas;
  std::vector<Target> destinations;
  Combine combine = Combine::kSum;
  friend bool operator==(const Task&, const Task&) = default;
};

// The devices, the worker that owns each, and the machine that each worker is on.
struct Topology {
  std::vector<std::int32_t> device_rank;
  std::vector<std::int32_t> hosts;          // of each rank, the device that is its CPU:0
  std::vector<bool> gpus = {};              // of each device, whether it is a GPU; empty: none is
  std::vector<std::int32_t> machines = {};  // of each rank, the machine it is on; empty: all are on one
  std::vector<std::int32_t> chips = {};     // of each device, which GPU it is; empty: no two are the same
  bool by_network = false;                  // messages between ranks of one machine go by the network, too
  bool is_gpu(std::int32_t device) const { return !gpus.empty() && gpus[static_cast<std::size_t>(device)]; }
  std::int32_t chip_of(std::int32_t device) const {
    return chips.empty() ? device : chips[static_cast<std::size_t>(device)];
  }
  std::int32_t rank_of(std::int32_t device) const { return device_rank[static_cast<std::size_t>(device)]; }
  std::int32_t machine_of(std::int32_t rank) const {
    return machines.empty() ? 0 : machines[static_cast<std::size_t>(rank)];
  }
  friend bool operator==(const Topology&, const Topology&) = default;
};

}  // namespace onesum::collective
