// The launcher's side channel of Open MPI, Slurm and others: PMIx. The connection, once made, ends with the
// process (std::exit or a return from main; a launcher takes other ends for crashes). Its library
// (libpmix.so.2) is opened when it is first needed, so that onesum runs without it; its header is needed to
// build this (libpmix-dev).
#pragma once

#include <memory>

#include "cluster/address_board.h"
#include "cluster/environment.h"

namespace onesum::cluster {

// Both throw unimplemented if this build knows no PMIx or the library cannot be opened, unavailable if no
// server answers, and what find_mpi throws.
std::unique_ptr<AddressBoard> open_pmix_board();
PmixJob ask_pmix_job();

}  // namespace onesum::cluster
