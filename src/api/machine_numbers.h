// Machines as small numbers, in which plans speak of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onesum::api {

// Of workers that say where they are: equal texts are one machine, an empty one is a machine of its own.
// Numbers are given by first appearance, so that all workers give the same.
std::vector<std::int32_t> machine_numbers(std::span<const std::string> texts);

}  // namespace onesum::api
