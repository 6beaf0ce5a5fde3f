// torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
// TORCHELASTIC_RUN_ID; others that start PyTorch (a Kubernetes PyTorchJob) all but the local ones and the
// last. RANK is too common a name: alone it says nothing.
//
// torchrun itself, or PyTorch in rank 0, listens on MASTER_PORT, so worker 0 takes the next port. A group
// that torchrun restarts is a job of its own.
#include <string>

#include "base/text.h"
#include "cluster/launchers.h"

namespace onesum::cluster {
namespace {

std::string job_of(LauncherReader& reader, std::uint64_t master_port) {
  std::string job = "torchrun";
  for (const std::string_view name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    const auto value = reader.find(name);
    if (!value) continue;
    reader.honour(name, "part of the job's name");
    job.append("-").append(*value);
  }
  return job.append("-").append(std::to_string(master_port));
}

std::string master_host(LauncherReader& reader) {
  const std::string expected = "the host of rank 0, without a port";
  const std::string_view host = reader.text("MASTER_ADDR", "the host of worker 0", expected);
  if (!is_host(host)) reader.refuse("MASTER_ADDR", expected);
  return std::string(host);
}

}  // namespace

std::optional<Invitation> invited_by_torchrun(const Context& context, std::string_view evidence) {
  const Environment& environment = context.environment;
  if (evidence == "RANK" && !environment.find("MASTER_ADDR")) {
    context.passed_over.push_back(environment.note(
        "RANK", "passed over: neither TORCHELASTIC_RUN_ID nor MASTER_ADDR is set", "torchrun"));
    return std::nullopt;
  }
  LauncherReader reader(environment, "torchrun", evidence);
  Invitation invitation;
  reader.read_ranks(invitation, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  if (invitation.size == 1) return reader.finish(std::move(invitation));
  const std::uint64_t master_port = reader.number(
      "MASTER_PORT", "part of the job's name; worker 0 listens on the next port, if on any", 1, 65534);
  invitation.job = job_of(reader, master_port);
  if (invitation.is_on_one_machine()) {
    meet_on_this_machine(invitation, context.surroundings);
  } else if (!context.config.address) {
    invitation.venue = HostPort{master_host(reader), static_cast<std::uint16_t>(master_port + 1)};
  }
  return reader.finish(std::move(invitation));
}

}  // namespace onesum::cluster
