// The workers of a cluster, as users write them: "/job:worker/replica:0/task:1".
#pragma once

#include <span>
#include <string>
#include <vector>

#include <onesum/device.h>

namespace onesum::api {

// The job, replica and task of a device, complete.
Device worker_of(const Device& device);

// The workers that the texts name, in their order. Refused are an empty list, empty texts, texts that name a
// device, and two that name one worker; messages begin with `who`.
std::vector<Device> parse_workers(std::span<const std::string> texts, const std::string& who);

}  // namespace onesum::api
