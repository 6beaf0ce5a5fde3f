// What a Cluster handle refers to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onesum/cluster.h>

#include "api/communicators.h"
#include "api/session.h"
#include "cluster/sequence.h"

namespace onesum {

struct Cluster::State {
  Device defaults;              // what completes a partial device: this worker's job, replica and task, CPU:0
  std::vector<Device> devices;  // complete; none: every CPU of this process
  std::vector<Device> workers;  // job, replica and task of each rank
  std::vector<Device> hosts;    // of several workers, their CPU:0, whatever devices they were given
  std::vector<Device> gpus;     // that values may be on besides `devices`, of workers in this process
  std::vector<std::int32_t> machines;     // of each rank; none: all are on one
  bool has_own_gpus = false;              // planned as if no two workers shared a GPU
  std::unique_ptr<api::Session> session;  // with the other workers' processes; null: all workers are here
  cluster::Sequence sequence;
  api::Communicators communicators;  // used in turns of the sequence

  // How often this worker has made a group of these workers with this name.
  std::uint64_t next_group(std::span<const int> ranks, std::string_view name);

  // What completes a partial device where all workers must understand it alike: worker 0's.
  const Device& shared_defaults() const noexcept { return session ? hosts.front() : defaults; }

  // Says why no engine serves a device; nothing if one does, or it is another process's.
  std::function<std::string(const Device&)> why_not_served() const;

 private:
  std::mutex groups_mutex_;
  std::map<std::pair<std::vector<int>, std::string>, std::uint64_t> groups_;
};

}  // namespace onesum
