// docs/semantics.md, 6.4 to 6.6, 9.2, 9.3 and 9.12. MultiWorkerAllReduce over workers inside this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <onesum/all_reduce.h>

namespace onesum::testing {

// What the class is made with, for two workers of two devices.
struct WorkerWay {
  const char* name;
  AllReduceSpecs specs;
  int num_packs = 0;
  int max_bytes = 0;
};
const std::vector<WorkerWay>& worker_ways();

// One replica for each worker, two, and such that are not in the workers' order; of this type of devices.
std::vector<std::vector<std::string>> worker_device_lists(std::string_view type);

// The core matrix, with worker 0's CPU as the host.
void check_worker_matrix(const WorkerWay& way, const std::vector<std::string>& devices);
// Tensors that fall under different specs, of different types, come back in the order they were given.
void check_input_order(const WorkerWay& way, const std::vector<std::string>& devices);

// On devices of this type, at most so many, of one to six workers of one to eight: every algorithm gives the
// same means, up to the order of additions.
void check_equivalence(std::string_view type, int most_devices = 32);
// The numbers of 9.3, over as many workers; the numbers of 9.12 around a ring.
void check_canonical_order(std::string_view type, const std::string& algorithm);
void check_order_of_ring(std::string_view type);

}  // namespace onesum::testing
