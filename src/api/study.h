// All-reduces over embedded workers to be looked at, for the tool: the halves that no call makes, and those
// that are too large to be stored. Worker w has devices w * G to w * G + G - 1, a replica and a result on
// each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/cluster.h>
#include <onesum/dtype.h>
#include <onesum/options.h>

#include "plan/cost.h"
#include "plan/lower_bound.h"
#include "plan/plan.h"

namespace onesum::api {

struct StudiedAllReduce {
  std::size_t workers = 1;
  std::size_t devices = 1;  // of each worker
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  AllReduceSpec spec;  // not "auto"
  Numerics numerics = Numerics::kCanonical;
  bool gpus =
      false;  // devices are GPUs, beside which every worker has its CPU; else CPUs, the first its CPU:0
  std::size_t machines = 1;  // among which the workers are divided in rank order, as evenly as can be
};

// Of each worker, the machine that it is on.
std::vector<std::int32_t> even_machine_numbers(std::size_t workers, std::size_t machines);

// Embedded workers whose calls are planned as if they were divided among machines like that, each with GPUs
// of its own.
Cluster embedded_on_machines(const std::vector<std::string>& worker_devices, int devices_per_worker,
                             const std::string& type, std::size_t machines);

struct SimulatedAllReduce {
  std::string algorithm;
  std::string order;  // of additions: "canonical", or what it is instead
  plan::Cost cost;
  plan::LowerBound bound;
};

// What it would cost for vectors of so many elements. The plan is never stored where xring and rechd cross
// workers; others are refused beyond the workers that fit.
SimulatedAllReduce simulate(const StudiedAllReduce& study, std::size_t elements,
                            const plan::CostConstants& constants);

enum class Half : std::uint8_t { kReduceScatter, kAllGather };

// Refuses all but xring, rechd and direct, of one level and one shard.
plan::Plan half_of(const StudiedAllReduce& study, Half half);

}  // namespace onesum::api
