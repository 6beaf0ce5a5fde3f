#include "api/accumulation_caller.h"

#include <variant>

#include <onesum/error.h>

#include "api/copies.h"

namespace onesum::api {

std::byte* AccumulationCaller::call(const Arguments& arguments) {
  const planner::Planned& planned = bound_.planned();
  const planner::Stream& stream = planned.streams[planned.pack_streams[arguments.pack].front()];
  const std::vector<Tensor> components = components_of(stream, arguments);
  const Tensor result = function_(components);
  check(result, components.front(), stream.pair);
  results_.push_back(ready_on(result, planned.devices[static_cast<std::size_t>(arguments.device)]));
  return static_cast<std::byte*>(results_.back().memory());
}

// The caller's own tensors as they are; what other processes sent lies where the function works.
std::vector<Tensor> AccumulationCaller::components_of(const planner::Stream& stream,
                                                      const Arguments& arguments) const {
  const Device& device = bound_.planned().devices[static_cast<std::size_t>(arguments.device)];
  const std::span<const Value> here = pairs_[stream.pair].value->values();
  const auto& model = std::get<Tensor>(here.front());
  std::vector<Tensor> components;
  std::size_t used = 0;
  for (std::size_t r = 0; r < stream.task.replicas.size(); ++r) {
    components.push_back(bound_.is_here(stream.task.replicas[r].device)
                             ? std::get<Tensor>(here[used++])
                             : Tensor::borrow(arguments.sources[r], model.dtype(), model.shape(), device));
  }
  return components;
}

void AccumulationCaller::check(const Tensor& result, const Tensor& first, std::size_t pair) const {
  const std::string name = planner::name_of_pair(bound_.traits().kind, pair) + ": accumulation_fn returned ";
  if (!result) throw Error(ErrorCode::kInvalidArgument, name + "no tensor");
  if (result.dtype() != first.dtype() || result.shape() != first.shape()) {
    throw Error(ErrorCode::kInvalidArgument,
                name + std::string(to_string(result.dtype())) + " " + result.shape().to_string() +
                    ", expected " + std::string(to_string(first.dtype())) + " " + first.shape().to_string() +
                    " as the components it was given");
  }
}

}  // namespace onesum::api
