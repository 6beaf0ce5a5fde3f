// Workers and devices, and the schemes to try on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <onesum/dtype.h>
#include <onesum/options.h>

#include "collective/all_reduce.h"
#include "collective/task.h"

namespace onesum::collective {

// W workers of G devices each, numbered worker by worker.
struct Layout {
  std::int32_t workers = 1;
  std::int32_t devices = 1;
  std::vector<std::int32_t>
      order;               // replica i is on device order[i], other devices have none; empty: all in order
  bool own_hosts = false;  // a worker's CPU is a device of its own; otherwise its first device
  std::vector<std::int32_t> machines = {};  // of each worker; empty: all are on one

  std::string name() const;
  std::int32_t num_replicas() const;
  Topology topology() const;
  Task task(ReduceOp op, DType dtype, bool in_place) const;
};

// Layouts whose replicas are permuted, interleaved, unevenly spread, on some of the devices, in one worker.
std::vector<Layout> odd_layouts();

// Workers that share machines: evenly, unevenly, in any order, with replicas anywhere.
std::vector<Layout> layouts_with_machines();

// Every algorithm alone, and every pair of them as a hierarchy, in one shard.
std::vector<Scheme> all_schemes();

bool has_ring(const Scheme& scheme);

}  // namespace onesum::collective
