// A PreparedReduce as Python has it: with the cluster that its Works run on.
#pragma once

#include <onesum/cluster.h>
#include <onesum/cross_device_ops.h>

namespace onesum::python {

struct Prepared {
  PreparedReduce reduce;
  Cluster cluster;
};

}  // namespace onesum::python
