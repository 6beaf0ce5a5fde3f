// The classes, with the arguments that the checks are made for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <onesum/all_reduce.h>

namespace onesum::testing {

// Names for make_ops.
const std::vector<std::string>& all_variants();

// `another` is a device that has no replica: where the variant "to_another" adds up. Without a cluster on
// this process's devices.
std::unique_ptr<CrossDeviceOps> make_ops(const std::string& variant, const std::string& another,
                                         const std::optional<Cluster>& cluster = {});

// The sum of all components, as a user would write it, on the first one's device.
Tensor add_all(std::span<const Tensor> components);

}  // namespace onesum::testing
