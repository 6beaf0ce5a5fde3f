// What a Cluster handle refers to.
#pragma once

#include <vector>

#include <onesum/cluster.h>

#include "cluster/sequence.h"

namespace onesum {

struct Cluster::State {
  Device defaults;              // what completes a partial device: this worker's job, replica and task, CPU:0
  std::vector<Device> devices;  // complete; none: every CPU of this process
  std::vector<Device> workers;  // job, replica and task of each rank
  std::vector<Device> hosts;    // of embedded workers, their CPU:0, whatever devices they were given
  cluster::Sequence sequence;
};

}  // namespace onesum
