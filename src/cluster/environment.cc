#include "cluster/environment.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/config.h"
#include "cluster/launchers.h"
#include "cluster/pmix.h"

namespace onesum::cluster {
namespace {

// A launcher is recognised by the first of its variables that is set.
struct Launcher {
  std::string_view name;
  std::array<std::string_view, 3> evidence;  // unused ones empty
  std::optional<Invitation> (*invite)(const Context&, std::string_view evidence);
};

// In order of precedence.
constexpr std::array<Launcher, 6> kLaunchers = {{
    {"onesum run", {"ONESUM_RANK", "ONESUM_SIZE", "ONESUM_JOB"}, invited_by_onesum_run},
    {"TF_CONFIG", {"TF_CONFIG"}, invited_by_tf_config},
    {"torchrun", {"TORCHELASTIC_RUN_ID", "RANK"}, invited_by_torchrun},
    {"Slurm", {"SLURM_PROCID", "SLURM_JOB_ID"}, invited_by_slurm},
    {"Open MPI (PMIx)", {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}, invited_by_pmix},
    {"MPICH (PMI)", {"PMI_RANK"}, invited_by_pmi},
}};

Invitation alone() {
  Invitation invitation;
  invitation.workers = {Device("/job:localhost/replica:0/task:0")};
  return invitation;
}

Invitation ask_launchers(const Context& context) {
  std::optional<Invitation> invitation;
  for (const Launcher& launcher : kLaunchers) {
    const std::string_view evidence = context.environment.first_of(launcher.evidence);
    if (evidence.empty()) continue;
    if (!invitation) {
      invitation = launcher.invite(context, evidence);
    } else {
      context.passed_over.push_back(context.environment.note(
          evidence, "passed over: " + invitation->source + " comes first", launcher.name));
    }
  }
  return invitation ? *std::move(invitation) : alone();
}

// What the user decides beside the launcher. A secret's value is not shown.
void add_settings(Invitation& invitation, const Context& context) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSettings = {{
      {"ONESUM_SECRET", "how workers of other machines prove that they belong here"},
      {"ONESUM_SECRET_FILE", "where the secret is by which workers of other machines prove themselves"},
      {"ONESUM_TRANSPORT", "what carries tensors between workers"},
      {"ONESUM_CHECKSUMS", "whether messages over the network are verified"},
      {"ONESUM_MACHINE", "which workers share a machine: those with the same text"},
      {"ONESUM_PROGRESS_TIMEOUT", "after how many seconds without progress a worker has failed"},
      {"ONESUM_JOIN_TIMEOUT", "for how many seconds workers are awaited"},
      {"ONESUM_FAULT", "faults of the transport, for drills"},
  }};
  for (const auto& [name, decided] : kSettings) {
    if (!context.environment.find(name)) continue;
    Variable variable = context.environment.note(name, decided, "the user");
    if (name == "ONESUM_SECRET") variable.value = "(not shown)";
    invitation.variables.push_back(std::move(variable));
  }
}

void use_address(Invitation& invitation, const HostPort& address) {
  Variable variable{"ONESUM_ADDRESS", to_string(address), "where worker 0 is", "the user"};
  if (invitation.size == 1) {
    variable.decided = "passed over: there is only one worker";
    invitation.passed_over.push_back(std::move(variable));
    return;
  }
  invitation.venue = address;
  if (invitation.job.empty()) invitation.job = to_string(address);
  invitation.variables.push_back(std::move(variable));
}

}  // namespace

Invitation read_invitation(std::span<const std::string_view> entries, const Surroundings& surroundings) {
  const Environment environment(entries);
  const Config config = parse_config(entries);
  std::vector<Variable> passed_over;
  const Context context{environment, config, surroundings, passed_over};
  Invitation invitation = ask_launchers(context);
  invitation.passed_over = std::move(passed_over);
  if (invitation.size == 1) {
    invitation.local_rank = 0;
    invitation.local_size = 1;
  }
  if (config.address) use_address(invitation, *config.address);
  add_settings(invitation, context);
  return invitation;
}

Invitation process_invitation() {
  const std::vector<std::string> entries = environment_entries();
  return read_invitation(std::vector<std::string_view>(entries.begin(), entries.end()),
                         {geteuid(), ask_pmix_job});
}

}  // namespace onesum::cluster
