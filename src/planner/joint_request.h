// A call of several processes as one request: each describes its own part as bytes, and every one puts the
// parts of all together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/request.h"

namespace onesum::planner {

// The part of one worker. Devices are complete, and components are as the caller gave them. Where tensors lie
// and which results are in place is a worker's own affair and left out, and so is its timeout.
std::vector<std::byte> to_bytes(const Request& request);
// Throws invalid_argument for bytes that are no request.
Request request_from(std::span<const std::byte> bytes);

// "batch_reduce (sum) of 161 float32 and int32 tensors, 25.6 MiB": what a person calls it.
std::string describe(const Request& request);

// The request of all workers, by rank: replicas and results in rank order, the destinations of all.
// Throws invalid_argument naming the first worker whose part does not go with worker 0's, and both parts.
Request joined(std::span<const Request> by_rank, std::span<const Device> workers);

// What all workers would say if each called on its own devices as rank `own` does: for plans that are made
// without asking them. Devices of other workers, which destinations may name, stay what they are.
std::vector<Request> said_alike(const Request& mine, std::size_t own, std::span<const Device> workers);

// For the plan of rank `own`: its results are in place as `mine` says, the others' are not.
void mark_in_place(Request& joint, std::span<const Request> by_rank, std::size_t own, const Request& mine);

}  // namespace onesum::planner
