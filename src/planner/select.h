// Gives each pack an algorithm, and the reason in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collective/all_reduce.h"
#include "collective/one_device.h"
#include "collective/task.h"
#include "plan/cost.h"
#include "planner/pack.h"
#include "planner/policy.h"

namespace onesum::planner {

struct Selection {
  std::string algorithm;  // its name, with shards: "pscpu/pscpu#2"
  std::string reason;
  bool canonical = true;  // whether it adds in the canonical order
  bool native = false;    // whether a vendor's library runs it, or a level of it
  std::int32_t on = 0;    // Way::kOneDevice, kConcatenate: where it is done
  collective::Accumulation accumulation = collective::Accumulation::kTree;
  collective::Scheme scheme;  // Way::kAllReduce
};

// What a selection may look at besides the pack.
struct Surroundings {
  CallKind kind = CallKind::kBatchReduce;
  const Policy& policy;
  const CommunicationOptions& options;
  const std::vector<Device>& devices;  // by their number in tasks
  const collective::Topology& topology;
  const plan::CostConstants& constants;
};

// `on`: the number of the policy's reduce_to_device; -1 if it has none.
Selection select(const PackOfStreams& pack, std::int32_t on, const Surroundings& surroundings);

}  // namespace onesum::planner
