// What a PreparedReduce refers to.
#pragma once

#include <memory>
#include <vector>

#include "api/cross_device_ops_impl.h"

namespace onesum {

struct PreparedReduce::State {
  State(std::shared_ptr<CrossDeviceOps::Impl> ops, ReduceOp op, std::span<const PerReplica> values,
        std::span<const PerReplica> results, const CommunicationOptions& options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void run_in_turn(Clock::time_point start);

  const std::shared_ptr<CrossDeviceOps::Impl> ops_;
  const api::CallTraits traits_;
  const std::vector<PerReplica> values_;
  const std::vector<PerReplica> results_;
  const CommunicationOptions options_;
  const api::ValuesAndResults arguments_;
  // Null where there is nothing to reduce, and where values mix dense and sparse components: these are made
  // dense anew in every run.
  std::unique_ptr<api::BoundCall> bound_;
};

}  // namespace onesum
