// Launchers of MPI programs.
//
// Open MPI's mpirun sets OMPI_COMM_WORLD_RANK and its kin, and runs a PMIx server, as others do that set only
// PMIX_RANK and PMIX_NAMESPACE. The hydra of MPICH and of Intel MPI sets PMI_RANK, PMI_SIZE and PMI_FD. None
// of them says where rank 0 is: worker 0 publishes its address through the launcher. Only Open MPI names the
// job in a variable, so that workers of one machine can meet without being told.
#include <string>

#include "base/text.h"
#include "cluster/launchers.h"

namespace onesum::cluster {
namespace {

void meet_through_pmix(Invitation& invitation, const Context& context) {
  if (invitation.size == 1) return;
  if (invitation.is_on_one_machine()) {
    meet_on_this_machine(invitation, context.surroundings);
  } else {
    invitation.venue = AskPmix{};
  }
}

std::string job_of(LauncherReader& reader) {
  return "pmix-" + std::string(reader.text("PMIX_NAMESPACE", "which job this is", "the name of the job"));
}

Invitation invited_by_open_mpi(const Context& context, std::string_view evidence) {
  LauncherReader reader(context.environment, "Open MPI (PMIx)", evidence);
  Invitation invitation;
  reader.read_ranks(invitation, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE"});
  const auto pmix_rank = reader.find("PMIX_RANK");
  if (pmix_rank && *pmix_rank != std::to_string(invitation.rank))
    reader.refuse("PMIX_RANK", "the same as OMPI_COMM_WORLD_RANK, " + std::to_string(invitation.rank));
  const bool may_have_no_job = invitation.size == 1 || context.config.address;
  if (reader.find("PMIX_NAMESPACE") || !may_have_no_job) invitation.job = job_of(reader);
  meet_through_pmix(invitation, context);
  return reader.finish(std::move(invitation));
}

}  // namespace

std::optional<Invitation> invited_by_pmix(const Context& context, std::string_view evidence) {
  const Environment& environment = context.environment;
  if (environment.find("OMPI_COMM_WORLD_RANK")) return invited_by_open_mpi(context, evidence);
  if (!environment.find("PMIX_NAMESPACE")) {
    context.passed_over.push_back(
        environment.note("PMIX_RANK", "passed over: PMIX_NAMESPACE is not set", "PMIx"));
    return std::nullopt;
  }
  LauncherReader reader(environment, "PMIx", evidence);
  Invitation invitation;
  invitation.job = job_of(reader);
  invitation.rank = reader.count("PMIX_RANK", "the rank of this worker", 0, kMostWorkers - 1);
  const PmixJob job = context.surroundings.ask_pmix();
  if (invitation.rank >= job.size)
    reader.refuse("PMIX_RANK",
                  "less than the size of the job by its PMIx server, " + std::to_string(job.size));
  invitation.size = job.size;
  invitation.local_rank = job.local_rank;
  invitation.local_size = job.local_size;
  invitation.workers = worker_names(job.size);
  meet_through_pmix(invitation, context);
  return reader.finish(std::move(invitation));
}

std::optional<Invitation> invited_by_pmi(const Context& context, std::string_view evidence) {
  LauncherReader reader(context.environment, "MPICH (PMI)", evidence);
  Invitation invitation;
  reader.read_ranks(invitation, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  if (invitation.size > 1 && !context.config.address) {
    invitation.venue = AskPmi{reader.count("PMI_FD", "where worker 0's address is published", 0, 1 << 20)};
  }
  return reader.finish(std::move(invitation));
}

}  // namespace onesum::cluster
