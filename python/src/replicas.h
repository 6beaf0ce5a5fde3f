// Replicas of a run: Python functions on the strategy's threads.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include <onesum/strategy.h>

#include "arguments.h"

namespace onesum::python {

void bind_replicas(nanobind::module_& module);

std::optional<PerReplica> run_replicas(MirroredStrategy& strategy, ReplicaFnLike fn);

}  // namespace onesum::python
