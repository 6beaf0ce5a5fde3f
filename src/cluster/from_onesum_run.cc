// `onesum run` starts all workers on this machine and sets ONESUM_RANK, ONESUM_SIZE and ONESUM_JOB. By hand,
// with ONESUM_ADDRESS, the same variables serve workers on several machines; the address then names the job.
#include <string>

#include "cluster/launchers.h"

namespace onesum::cluster {

std::optional<Invitation> invited_by_onesum_run(const Context& context, std::string_view evidence) {
  LauncherReader reader(context.environment, "onesum run", evidence);
  Invitation invitation;
  reader.read_ranks(invitation, {"ONESUM_RANK", "ONESUM_SIZE", "", ""});
  const auto& address = context.config.address;
  if (address && !context.config.job) {
    invitation.job = to_string(*address);
  } else {
    invitation.job =
        reader.text("ONESUM_JOB", "which job this is", "a name that all workers of the job share");
  }
  if (!address && invitation.size > 1) {
    invitation.local_rank = invitation.rank;
    invitation.local_size = invitation.size;
    meet_on_this_machine(invitation, context.surroundings);
  }
  return reader.finish(std::move(invitation));
}

}  // namespace onesum::cluster
