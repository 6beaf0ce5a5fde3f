// Where a bench takes place: on devices of this process, on workers embedded in it, or on worker processes,
// of which this one may be one, or the one that has to start them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <onesum/all_reduce_spec.h>
#include <onesum/cluster.h>
#include <onesum/cross_device_ops.h>

#include "cli/bench_command.h"

namespace onesum::cli {

enum class Part {
  kOneProcess,     // its devices are all there is
  kEmbedding,      // the workers are inside it
  kWorker,         // a launcher has started it, with others
  kStartsWorkers,  // there is no launcher, and workers were asked for
};

// Throws UsageError where the options contradict each other or the launcher. Sets ONESUM_TRANSPORT as asked,
// for this process or the workers that it starts; so it must come before anything reads the settings.
Part part_of_this_process(const BenchOptions& options);

// As many workers as asked for, each of which runs this tool with the same arguments; each with GPUs of its
// own, if it is to have any. Calls fork; see cli/run_command.h.
int run_bench_workers(const BenchOptions& options);

struct Stage {
  std::optional<Cluster> cluster;    // of worker processes
  std::vector<std::string> workers;  // embedded ones, or processes; empty: devices of this process alone
  std::string device_type = "CPU";
  std::size_t devices_each = 1;
  std::size_t processes = 1;
  std::size_t processes_here = 1;  // of those, on this machine
  std::size_t rank = 0;            // of this process
  std::optional<AllReduceSpecs> spec;
  std::string transport;  // between processes
  std::string case_name;

  bool is_on_gpus() const { return device_type == "GPU"; }
  std::vector<std::string> devices() const;  // of all replicas
  std::unique_ptr<CrossDeviceOps> ops() const;
};

// Joins the cluster, if this process is a worker. Before that it throws unavailable if GPUs are missing.
Stage set_stage(const BenchOptions& options, Part part);

}  // namespace onesum::cli
