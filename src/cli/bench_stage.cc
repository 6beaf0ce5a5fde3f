#include "cli/bench_stage.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include <onesum/all_reduce.h>

#include "api/participants.h"
#include "base/config.h"
#include "base/text.h"
#include "cli/bench_gpus.h"
#include "cli/run_command.h"
#include "cli/usage.h"
#include "cli/worker_names.h"

namespace onesum::cli {
namespace {

constexpr const char* kTransport = "ONESUM_TRANSPORT";

void refuse_in_one_process(const BenchOptions& options) {
  if (!options.transport) return;
  throw UsageError(
      "--transport: one process sends nothing; it needs worker processes: --workers W without --embedded, or "
      "a launcher, such as onesum run -n 4 -- onesum bench");
}

void refuse_other_workers(const BenchOptions& options, const cluster::Invitation& invitation) {
  const auto started = static_cast<std::size_t>(invitation.size);
  if (!options.workers || *options.workers == started) return;
  throw UsageError(
      fmt::format("--workers: {} asked for, and the launcher ({}) has started {}; leave --workers out, or "
                  "start as many",
                  *options.workers, invitation.source, started));
}

void set_transport(const BenchOptions& options) {
  if (options.transport) setenv(kTransport, options.transport->c_str(), 1);
}

void refuse_other_transport(const BenchOptions& options, const std::string& set,
                            const cluster::Invitation& invitation) {
  throw UsageError(
      fmt::format("--transport: {} asked for, and the workers of the launcher ({}) have {}={}; leave one out",
                  *options.transport, invitation.source, kTransport, set));
}

}  // namespace

Part part_of_this_process(const BenchOptions& options) {
  if (options.embedded) {
    if (!options.workers) throw UsageError("--embedded needs --workers W");
    refuse_in_one_process(options);
    return Part::kEmbedding;
  }
  const char* const set = std::getenv(kTransport);
  const bool contradicts = options.transport && set != nullptr && *options.transport != set;
  if (!contradicts) set_transport(options);
  const cluster::Invitation invitation = api::participants();
  if (invitation.source != "none") {
    if (contradicts) refuse_other_transport(options, set, invitation);
    refuse_other_workers(options, invitation);
    return Part::kWorker;
  }
  if (!options.workers) {
    refuse_in_one_process(options);
    return Part::kOneProcess;
  }
  set_transport(options);
  return Part::kStartsWorkers;
}

int run_bench_workers(const BenchOptions& options) {
  RunOptions run;
  run.workers = *options.workers;
  run.program = {std::filesystem::read_symlink("/proc/self/exe").string()};
  run.program.insert(run.program.end(), options.arguments.begin(), options.arguments.end());
  run.first_speaks = true;
  if (options.device_type == "GPU") {
    run.gpus_of_workers = gpus_of_workers(run.workers, options.devices.value_or(1));
  }
  setenv("UCX_LOG_FILE", "stderr", 0);  // whose messages would be among the results
  return run_workers(run);
}

std::vector<std::string> Stage::devices() const {
  return workers.empty() ? own_device_names(device_type, devices_each)
                         : device_names(workers, device_type, devices_each);
}

std::unique_ptr<CrossDeviceOps> Stage::ops() const {
  if (cluster) {
    return std::make_unique<MultiWorkerAllReduce>(workers, static_cast<int>(devices_each), *spec, 0, 0, 10,
                                                  *cluster);
  }
  const auto count = workers.empty() ? std::nullopt : std::optional(workers.size());
  return make_ops({.spec = spec, .workers = count, .devices = devices_each, .device_type = device_type});
}

Stage set_stage(const BenchOptions& options, Part part) {
  Stage stage;
  stage.spec = options.spec;
  stage.device_type = options.device_type;
  stage.devices_each = options.devices.value_or(part == Part::kWorker ? 1 : 2);
  if (stage.is_on_gpus()) refuse_missing_gpus(stage.devices_each);
  stage.case_name = options.case_name.value_or(part == Part::kWorker ? "workers" : "inproc");
  if (part == Part::kEmbedding || (part == Part::kOneProcess && options.spec)) {
    stage.workers = worker_names(options.workers.value_or(1));
  }
  if (part != Part::kWorker) return stage;
  stage.cluster = Cluster::from_environment();
  stage.processes = static_cast<std::size_t>(stage.cluster->size());
  stage.processes_here = static_cast<std::size_t>(api::participants().local_size.value_or(1));
  stage.rank = static_cast<std::size_t>(stage.cluster->rank());
  for (const Device& worker : stage.cluster->workers()) stage.workers.push_back(worker.to_string());
  if (!stage.spec) stage.spec = AllReduceSpecs("auto");
  stage.transport = to_string(process_config().transport);
  return stage;
}

}  // namespace onesum::cli
