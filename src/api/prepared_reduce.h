// What a PreparedReduce refers to.
#pragma once

#include <memory>

#include <onesum/collective.h>

#include "api/cross_device_ops_impl.h"

namespace onesum {

struct PreparedReduce::State {
  State(std::shared_ptr<CrossDeviceOps::Impl> on, Collective what, const CommunicationOptions& with);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void run_in_turn(Clock::time_point start);

  const std::shared_ptr<CrossDeviceOps::Impl> ops;
  const Collective call;
  const api::CallTraits traits;
  const CommunicationOptions options;
  // Null where there is nothing to reduce, where values mix dense and sparse components, and where duplicate
  // rows are merged: these are made dense, and their indices looked at, anew in every run.
  std::unique_ptr<api::BoundCall> bound;
};

}  // namespace onesum
