// Whether this program itself uses MPI, which talks to the same launcher.
#pragma once

#include <cstdint>

namespace onesum::cluster {

enum class MpiInProcess : std::uint8_t { kNo, kInitialized };

// Looks for the function MPI_Initialized among the symbols that all of the process sees; an MPI library that
// was loaded privately (dlopen with RTLD_LOCAL, as Python's extension modules are) is not found. Throws
// invalid_argument if MPI is there and not initialised: our talk with the launcher would break MPI_Init.
MpiInProcess find_mpi();

}  // namespace onesum::cluster
