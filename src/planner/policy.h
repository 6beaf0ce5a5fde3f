// What distinguishes one public class from another: the value each of them fills.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/device.h>

namespace onesum::planner {

struct Policy {
  std::string name;                        // of the public class, for messages
  std::optional<Device> reduce_to_device;  // complete; absent: the first device of each destination
  bool has_accumulation_fn = false;        // dense values are summed by the user's function

  // How dense values are all-reduced, by size; valid (ascending limits, the last one none). Empty: never,
  // they are reduced to one device.
  std::vector<AllReduceSpec> specs{};
  int num_packs = 0;                       // > 0: the tensors of a batch, concatenated, are cut into so many
  std::size_t small_tensor_max_bytes = 0;  // otherwise tensors up to this size are grouped,
  int small_tensors_max_group = 10;        // at most so many to a pack

  bool all_workers = false;  // what is all-reduced has a replica on every worker
};

// Everything in it, for people and to be compared.
std::string to_string(const Policy& policy);

}  // namespace onesum::planner
