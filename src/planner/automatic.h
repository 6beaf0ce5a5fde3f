// The library's own choice of an all-reduce: the candidate that the cost model predicts to be fastest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <onesum/options.h>

#include "collective/all_reduce.h"
#include "collective/task.h"
#include "plan/cost.h"

namespace onesum::planner {

struct Candidate {
  collective::Scheme scheme;
  double seconds = 0;          // predicted
  bool is_known_best = false;  // measured, whatever is predicted
};

// All that were considered, the best one first (of equals the one considered first, on every worker alike).
// Canonical numerics admit canonical schemes only; a hint for a ring or NCCL counts among what they admit.
// On one machine, with one replica for each worker, on its CPU, those are first that were measured to be
// fastest: `exchange` for small tensors, and all of two workers that share memory; `pool` for larger ones of
// many; `doubling` and `rechd` where there are more than two, and messages go by the network. The cost model
// knows one kind of link between workers. Where some share a machine and others do not it is not asked
// whether to take `machines`, which is taken if a machine then sends no more than with `direct`.
std::vector<Candidate> candidates(const collective::Topology& topology, const collective::Task& task,
                                  std::size_t elements, const CommunicationOptions& options,
                                  const plan::CostConstants& constants);

// "nccl/direct is predicted to take 10.2 µs; the runner-up nccl/rechd is predicted to take 13.0 µs".
std::string reason_of(const std::vector<Candidate>& ranked);

}  // namespace onesum::planner
