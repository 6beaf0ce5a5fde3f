#include "api/study.h"

#include <onesum/error.h>

#include "api/cluster_state.h"
#include "base/element.h"
#include "collective/all_reduce.h"
#include "collective/streamed.h"
#include "plan/sizes.h"
#include "plan/timeline.h"

namespace onesum::api {
namespace {

// CPUs become devices only where an algorithm may use them.
void add_hosts(const StudiedAllReduce& study, collective::Topology& topology) {
  topology.gpus.assign(topology.device_rank.size(), true);
  if (study.spec.alg.find("pscpu") == std::string::npos) return;
  for (std::size_t w = 0; w < study.workers; ++w) {
    topology.hosts[w] = static_cast<std::int32_t>(topology.device_rank.size());
    topology.device_rank.push_back(static_cast<std::int32_t>(w));
    topology.gpus.push_back(false);
  }
}

collective::Topology topology_of(const StudiedAllReduce& study) {
  collective::Topology topology;
  for (std::size_t w = 0; w < study.workers; ++w) {
    topology.hosts.push_back(static_cast<std::int32_t>(w * study.devices));
    topology.device_rank.insert(topology.device_rank.end(), study.devices, static_cast<std::int32_t>(w));
  }
  if (study.machines > 1) topology.machines = even_machine_numbers(study.workers, study.machines);
  if (study.gpus) add_hosts(study, topology);
  return topology;
}

collective::Task task_of(const StudiedAllReduce& study) {
  const auto replicas = static_cast<std::int32_t>(study.workers * study.devices);
  const Element input = element_of(study.dtype);
  collective::Task task;
  task.output = element_of(result_dtype(study.op, study.dtype));
  task.accumulator = accumulator_of(study.op, input);
  task.divisor = study.op == ReduceOp::kMean ? replicas : 1;
  task.combine = combine_of(study.op);
  if (study.in_place && task.output != input) {
    throw Error(ErrorCode::kInvalidArgument, "a mean of " + std::string(to_string(study.dtype)) +
                                                 " cannot be in place: its results are " +
                                                 std::string(to_string(task.output)));
  }
  for (std::int32_t r = 0; r < replicas; ++r) {
    task.replicas.push_back({r, input});
    task.destinations.push_back({r, study.in_place ? r : -1});
  }
  return task;
}

collective::Scheme scheme_of(const StudiedAllReduce& study) {
  const auto scheme = collective::scheme_named(study.spec.alg, static_cast<std::uint32_t>(study.spec.shards));
  if (!scheme) {
    throw Error(ErrorCode::kInvalidArgument, "no one algorithm is named " + study.spec.alg);
  }
  collective::Scheme result = *scheme;
  result.fast = study.numerics == Numerics::kFast;
  return result;
}

// What the bound is of; how it is cut does not matter.
plan::Pack pack_of(const collective::Task& task) {
  plan::Pack pack{task.contract, task.accumulator, task.output, task.divisor, {}, {}, {}, task.combine};
  for (const collective::Source& replica : task.replicas) pack.replicas.push_back(replica.device);
  for (const collective::Target& target : task.destinations) pack.destinations.push_back(target.device);
  return pack;
}

}  // namespace

std::vector<std::int32_t> even_machine_numbers(std::size_t workers, std::size_t machines) {
  std::vector<std::int32_t> numbers;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    numbers.push_back(static_cast<std::int32_t>(worker * machines / workers));
  }
  return numbers;
}

Cluster embedded_on_machines(const std::vector<std::string>& worker_devices, int devices_per_worker,
                             const std::string& type, std::size_t machines) {
  const Cluster cluster = Cluster::embedded(worker_devices, devices_per_worker, type);
  cluster.state().machines = even_machine_numbers(worker_devices.size(), machines);
  cluster.state().has_own_gpus = true;
  return cluster;
}

SimulatedAllReduce simulate(const StudiedAllReduce& study, std::size_t elements,
                            const plan::CostConstants& constants) {
  const collective::Topology topology = topology_of(study);
  const collective::Task task = task_of(study);
  const collective::Scheme scheme = scheme_of(study);
  const collective::StreamedAllReduce streamed(topology, task, scheme);
  SimulatedAllReduce result;
  result.algorithm = to_string(scheme);
  result.order = streamed.order();
  result.cost = plan::timeline(streamed.lanes(), plan::Sizes{{elements}, {{}}}, constants, streamed.links());
  result.bound = plan::lower_bound(pack_of(task), topology.device_rank, task.replicas.front().element,
                                   elements, constants);
  return result;
}

plan::Plan half_of(const StudiedAllReduce& study, Half half) {
  const collective::Scheme scheme = scheme_of(study);
  return half == Half::kReduceScatter ? collective::reduce_scatter(topology_of(study), task_of(study), scheme)
                                      : collective::all_gather(topology_of(study), task_of(study), scheme);
}

}  // namespace onesum::api
