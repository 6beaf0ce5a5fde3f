// What `onesum info` says of GPUs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace onesum::cli {

class JsonObject;

// Lines of a name and a value; where there are no GPUs, the reason.
std::vector<std::pair<std::string, std::string>> gpu_lines();

// Sets gpus, and what belongs to them: why there are none, or the versions and files of the libraries.
void set_gpus(JsonObject& info);

}  // namespace onesum::cli
