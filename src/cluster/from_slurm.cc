// Slurm: srun sets SLURM_PROCID, SLURM_STEP_ID, SLURM_STEP_NUM_TASKS (and SLURM_NTASKS), SLURM_STEP_NODELIST
// and more for each task. A shell of salloc or a batch script is part of the allocation and no task: it is
// alone. So is what `mpirun` starts inside an allocation, as far as Slurm knows: on nodes other than the
// first it inherits the variables of mpirun's daemon, which is a task of Slurm's; the MPI launcher's own
// count then.
//
// Worker 0 is on the first node of the step. On several nodes it listens on the port
// 20000 + (job id + 1009 × step id) mod 10000: below the ports that systems give out by themselves, and
// different for jobs that share a node.
#include <array>
#include <string>

#include <onesum/error.h>

#include "base/text.h"
#include "cluster/launchers.h"
#include "cluster/node_list.h"

namespace onesum::cluster {
namespace {

constexpr std::uint64_t kFirstSpecialStep = 0xfffffff0;  // batch scripts, interactive shells and the like
constexpr std::array<std::string_view, 2> kSetByMpi = {"OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"};
constexpr std::uint64_t kMostJobs = 0xffffffff;

std::string_view either(const Environment& environment, std::string_view name, std::string_view older_name) {
  return environment.find(name) ? name : environment.find(older_name) ? older_name : name;
}

// Why this process is no task that srun has started; empty if it is one.
std::string why_no_task(const Environment& environment) {
  const std::string_view mpi = environment.first_of(kSetByMpi);
  if (!mpi.empty()) return std::string(mpi) + " is set: an MPI launcher started this process, not srun";
  const auto step = environment.find(either(environment, "SLURM_STEP_ID", "SLURM_STEPID"));
  const auto step_id = step ? parse_number(*step, kMostJobs) : std::nullopt;
  if (!environment.find("SLURM_PROCID") || !step || (step_id && *step_id >= kFirstSpecialStep))
    return "this process is in an allocation, but srun did not start it";
  return "";
}

std::vector<std::string> nodes_of(LauncherReader& reader, std::string_view name) {
  const std::string_view list =
      reader.text(name, "which machines there are; worker 0 is on the first", "the nodes of this step");
  try {
    return expand_node_list(list, kMostWorkers);
  } catch (const Error& error) {
    reader.refuse(name, std::string("a list of nodes such as node[01-04,7]: ") + error.what());
  }
}

std::optional<int> tasks_here(LauncherReader& reader, const Invitation& invitation) {
  const std::string_view name = "SLURM_STEP_TASKS_PER_NODE";
  const auto list = reader.find(name);
  const auto node = reader.count_if_set("SLURM_NODEID", "which of the machines this is", 0, kMostWorkers);
  if (!list || !node) return std::nullopt;
  reader.honour(name, "how many workers are on this machine");
  int tasks = 0;
  try {
    tasks = tasks_on_node(*list, static_cast<std::size_t>(*node));
  } catch (const Error& error) {
    reader.refuse(name, std::string("tasks of each node such as 2(x3),1: ") + error.what());
  }
  if (tasks <= invitation.local_rank.value_or(0) || tasks > invitation.size)
    reader.refuse(name, "more tasks on this node than SLURM_LOCALID, and no more than the step has");
  return tasks;
}

struct Step {
  std::uint64_t job = 0;
  std::uint64_t id = 0;
};

Step step_of(LauncherReader& reader, const Environment& environment) {
  const std::string decided = "part of the job's name and of worker 0's port";
  return {reader.number(either(environment, "SLURM_JOB_ID", "SLURM_JOBID"), decided, 0, kMostJobs),
          reader.number(either(environment, "SLURM_STEP_ID", "SLURM_STEPID"), decided, 0, kMostJobs)};
}

std::uint16_t port_of(const Step& step) {
  return static_cast<std::uint16_t>(20000 + (step.job + 1009 * step.id) % 10000);
}

// Tasks may be laid out by a host file; then the first node need not be worker 0's.
void check_first_node(const LauncherReader& reader, const Invitation& invitation) {
  const auto node = reader.find("SLURM_NODEID");
  if (invitation.rank != 0 || !node || *node == "0") return;
  reader.refuse(
      "SLURM_NODEID",
      "0 for rank 0, which others look for on the first node; set ONESUM_ADDRESS to HOST:PORT of rank 0");
}

}  // namespace

std::optional<Invitation> invited_by_slurm(const Context& context, std::string_view evidence) {
  const Environment& environment = context.environment;
  if (const std::string reason = why_no_task(environment); !reason.empty()) {
    context.passed_over.push_back(environment.note(evidence, "passed over: " + reason, "Slurm"));
    return std::nullopt;
  }
  LauncherReader reader(environment, "Slurm", evidence);
  Invitation invitation;
  reader.read_ranks(invitation, {"SLURM_PROCID", either(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
                                 "SLURM_LOCALID", ""});
  if (invitation.size == 1) return reader.finish(std::move(invitation));
  const Step step = step_of(reader, environment);
  invitation.job = "slurm-" + std::to_string(step.job) + "." + std::to_string(step.id);
  const std::string_view list = either(environment, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  if (context.config.address && !environment.find(list)) return reader.finish(std::move(invitation));
  const std::vector<std::string> nodes = nodes_of(reader, list);
  if (nodes.size() == 1) {
    invitation.local_size = invitation.size;
    meet_on_this_machine(invitation, context.surroundings);
  } else {
    invitation.local_size = tasks_here(reader, invitation);
    if (!context.config.address) check_first_node(reader, invitation);
    invitation.venue = HostPort{nodes.front(), port_of(step)};
  }
  return reader.finish(std::move(invitation));
}

}  // namespace onesum::cluster
