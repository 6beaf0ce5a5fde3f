// Calls whose results depend on every replica, for workers in one process and in processes of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <onesum/onesum.h>

namespace onesum::testing {

inline constexpr int kDevices = 2;  // of each worker

std::vector<std::string> worker_names(int size);

// One of every kind of algorithm.
const std::vector<std::string>& all_specs();

// Replicas of the workers [first, first + count), two each: values that another order of additions, or
// another replica, would change.
PerReplica replicas(int first, int count, DType dtype, std::size_t elements, std::uint64_t seed);

// The bits of all components, short; of those on the devices of one worker.
std::string digest(const DistributedValues& value);
std::string digest_of_worker(const Mirrored& result, int rank);

// Results of many calls with the spec, by rank; of this process's rank alone if it is one worker of several
// (`own`, else -1).
std::vector<std::string> results_of(const Cluster& cluster, int own, const std::string& spec);

}  // namespace onesum::testing
