#include "cluster/mpi_in_process.h"

#include <dlfcn.h>

#include <onesum/error.h>

namespace onesum::cluster {

MpiInProcess find_mpi() {
  using Query = int (*)(int*);
  const auto is_initialized = reinterpret_cast<Query>(::dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  if (is_initialized == nullptr) return MpiInProcess::kNo;
  int yes = 0;
  if (is_initialized(&yes) == 0 && yes != 0) return MpiInProcess::kInitialized;
  throw Error(
      ErrorCode::kInvalidArgument,
      "this program uses MPI, whose MPI_Init fails after another has talked to the launcher; expected "
      "MPI_Init to have been called before, or ONESUM_ADDRESS to say where worker 0 is");
}

}  // namespace onesum::cluster
