// What `onesum info` says of GPUs, and of the network between their machines.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/gpu_report.h"

namespace onesum::cli {

class JsonObject;

// Lines of a name and a value; where there are no GPUs, the reason.
std::vector<std::pair<std::string, std::string>> gpu_lines();

// Sets gpus, and what belongs to them: why there are none, or the versions and files of the libraries.
void set_gpus(JsonObject& info);

// What the line of UCX says.
std::string network_text(const api::NetworkReport& found);
// Sets ucx, or why_no_ucx.
void set_network(JsonObject& info);

}  // namespace onesum::cli
