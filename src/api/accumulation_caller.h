// Calls the user's accumulation_fn for a pack, which is one tensor of one pair.
#pragma once

#include <string>
#include <vector>

#include <onesum/cross_device_ops.h>

#include "api/bound_call.h"
#include "api/pairs.h"
#include "exec/executor.h"

namespace onesum::api {

// Lives for one run of the bound call with these pairs.
class AccumulationCaller final : public exec::FunctionCaller {
 public:
  AccumulationCaller(const AccumulationFn& function, const BoundCall& bound, const Pairs& pairs)
      : function_(function), bound_(bound), pairs_(pairs) {}

  std::byte* call(const Arguments& arguments) override;

 private:
  std::vector<Tensor> components_of(const planner::Stream& stream, const Arguments& arguments) const;
  void check(const Tensor& result, const Tensor& first, std::size_t pair) const;

  const AccumulationFn& function_;
  const BoundCall& bound_;
  const Pairs& pairs_;
  std::vector<Tensor> results_;  // alive until they were copied out
};

}  // namespace onesum::api
