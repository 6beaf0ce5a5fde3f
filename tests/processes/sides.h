// The same calls made twice: by workers in processes of their own, and with all workers in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <onesum/onesum.h>

#include "calls.h"

namespace onesum::testing {

// One side of the comparison: a worker of several processes, or all of them.
struct Side {
  Cluster cluster;
  int own = -1;  // -1: all
  int workers = 3;

  int first() const { return own < 0 ? 0 : own; }
  int count() const { return own < 0 ? workers : 1; }

  // Two replicas on each worker.
  PerReplica values(DType dtype, std::size_t elements, std::uint64_t seed) const {
    return replicas(first(), count(), dtype, elements, seed);
  }
  MultiWorkerAllReduce ops(const std::string& spec) const {
    return {worker_names(workers), kDevices, AllReduceSpecs(spec), 0, 0, 10, cluster};
  }

  // The devices of this side's replicas where workers have two and one in turn.
  std::vector<Device> uneven_devices() const;
  // A component made for each of them; replicas are numbered over all workers.
  PerReplica uneven(const std::function<Value(int replica, const Device& device)>& make) const;
};

std::string own_device(int worker, int device);

// What `call` gives to each of `workers` workers must not depend on where they are: types, shapes, dense
// shapes and every bit. Returns what all workers got, as text.
std::string expect_same(int workers, const std::function<std::vector<Mirrored>(const Side&)>& call,
                        const std::string& transport = "shm");

}  // namespace onesum::testing
