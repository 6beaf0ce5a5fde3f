// Who takes part, found in the variables that a launcher has set.
//
// Asked in this order, and the first that answers decides: ONESUM_RANK and its kin (`onesum run`), TF_CONFIG,
// torchrun, Slurm, Open MPI and other launchers with PMIx, MPICH and others with PMI; else this process is
// alone. ONESUM_ADDRESS overrides where worker 0 is, whoever named the workers. docs/configuration.md has the
// variables. Launchers' variables that are empty count as not set.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "cluster/invitation.h"

namespace onesum::cluster {

// What a PMIx server says of this process's job; the variables it sets leave it out.
struct PmixJob {
  int size = 1;
  std::optional<int> local_rank;
  std::optional<int> local_size;
};

// What is not in the variables.
struct Surroundings {
  unsigned uid = 0;
  std::function<PmixJob()> ask_pmix;  // called at most once, and only where PMIx without Open MPI decides
};

// From entries of the form NAME=value. Throws invalid_argument naming the variable, its value and what is
// expected, also for variables that contradict each other or are missing, and for ONESUM_ variables that
// parse_config refuses.
Invitation read_invitation(std::span<const std::string_view> environment, const Surroundings& surroundings);

// From this process's environment, as it is now. Before threads change it.
Invitation process_invitation();

}  // namespace onesum::cluster
