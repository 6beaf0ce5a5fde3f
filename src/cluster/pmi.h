// The launcher's side channel of MPICH, Intel MPI and others: the wire protocol of PMI-1 on a file descriptor
// that the launcher has left open (PMI_FD). address_board.h says how this goes with a program that uses MPI.
#pragma once

#include <memory>

#include "base/clock.h"
#include "cluster/address_board.h"
#include "cluster/mpi_in_process.h"

namespace onesum::cluster {

// The descriptor stays the caller's; it must be a connected socket or pipe, whether blocking or not. Where
// MPI is initialised, it has begun the connection and will end it; else the board does both.
std::unique_ptr<AddressBoard> open_pmi_board(int fd, MpiInProcess mpi, Clock::time_point deadline);

}  // namespace onesum::cluster
