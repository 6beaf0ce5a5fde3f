// What distinguishes one public class from another: the value each of them fills.
#pragma once

#include <optional>
#include <string>

#include <onesum/device.h>

namespace onesum::planner {

struct Policy {
  std::string name;                        // of the public class, for messages
  std::optional<Device> reduce_to_device;  // complete; absent: the first device of each destination
  bool has_accumulation_fn = false;        // dense values are summed by the user's function
};

}  // namespace onesum::planner
