// Named, mutable values.
//
// A Variable made inside a strategy's scope is mirrored: it has one component per device of the strategy,
// equal at the start. Copying a Variable copies the handle. Reductions take a variable as a value (its
// components as replicas) or as a destination (only its devices count); they never write it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <onesum/export.h>
#include <onesum/tensor.h>
#include <onesum/values.h>

namespace onesum {

class ONESUM_API Variable {
 public:
  // A copy of `initial`: on its device, or inside a scope on each device of the strategy. Made in
  // cross-replica context only.
  Variable(std::string name, const Tensor& initial);

  const std::string& name() const;
  bool is_mirrored() const;
  std::span<const Tensor> components() const;  // in replica order
  std::vector<Device> devices() const;

  // In a replica the component on its device; in cross-replica context, or if it is not mirrored, the first
  // one.
  const Tensor& value() const;

  // Copies `value` into the component on the replica's device; in cross-replica context into every component.
  // Shape and type must be the variable's. A Mirrored gives each component the copy on its own device, or the
  // only copy there is. What is refused changes nothing.
  void assign(const Tensor& value);
  void assign(const Mirrored& value);

 protected:
  Variable(std::string name, const Tensor& initial, std::span<const Device> devices);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A Variable that is mirrored on devices given by name, without a strategy.
class ONESUM_API MirroredVariable : public Variable {
 public:
  MirroredVariable(std::string name, const Tensor& initial, std::span<const Device> devices);
};

}  // namespace onesum
