// Values with one component per replica, and destinations.
//
// All of these are handles: copying them copies no memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/export.h>
#include <onesum/tensor.h>

namespace onesum {

class Variable;

// Components in replica order, each on a device of its own. Of a result that (also) lives on devices of other
// processes only the components here can be read; devices() names the others' last.
class ONESUM_API DistributedValues {
 public:
  std::size_t size() const noexcept { return values_.size(); }
  std::span<const Value> values() const noexcept { return values_; }
  const Value& value(std::size_t replica) const;
  const Tensor& tensor(std::size_t replica = 0) const;         // invalid_argument if that component is sparse
  const IndexedSlices& slices(std::size_t replica = 0) const;  // invalid_argument if it is dense
  std::vector<Device> devices() const;

 protected:
  explicit DistributedValues(std::vector<Value> values) : values_(std::move(values)) {}

  std::vector<Value> values_;
  std::vector<Device> elsewhere_;  // devices of other processes
};

// Equal copies, one per device: what reductions return.
class ONESUM_API Mirrored : public DistributedValues {
 public:
  explicit Mirrored(std::vector<Value> values);
  // With copies on devices of other processes too; here there may be none then.
  Mirrored(std::vector<Value> values, std::vector<Device> elsewhere);

  // With one device it reads as that tensor; with several this is invalid_argument.
  operator const Tensor&() const;  // NOLINT(google-explicit-constructor)
};

// Components that may differ: what reductions take. One replica may be given as it is.
class ONESUM_API PerReplica : public DistributedValues {
 public:
  // No component: what a worker passes that brings nothing to a call of several, or gets nothing of it.
  PerReplica() : DistributedValues({}) {}
  explicit PerReplica(std::vector<Value> values);
  explicit PerReplica(std::vector<Tensor> tensors);
  PerReplica(Tensor tensor);             // NOLINT(google-explicit-constructor): one replica
  PerReplica(IndexedSlices slices);      // NOLINT(google-explicit-constructor): one replica
  PerReplica(const Mirrored& mirrored);  // NOLINT(google-explicit-constructor): its copies as replicas
  PerReplica(const Variable& variable);  // NOLINT(google-explicit-constructor): its copies as replicas
};

// Where results go: the devices of a value, a variable or a tensor (only their devices count, none is ever
// written), or a device string. A string that names no task stands for that device of every worker, with a
// task for that worker's only. Empty ones are invalid_argument.
class ONESUM_API Destination {
 public:
  Destination(const DistributedValues& values);  // NOLINT(google-explicit-constructor)
  Destination(const Variable& variable);         // NOLINT(google-explicit-constructor)
  Destination(const Tensor& tensor);             // NOLINT(google-explicit-constructor)
  Destination(const IndexedSlices& slices);      // NOLINT(google-explicit-constructor)
  Destination(std::string_view device);          // NOLINT(google-explicit-constructor)
  Destination(const std::string& device);        // NOLINT(google-explicit-constructor)
  Destination(const char* device);               // NOLINT(google-explicit-constructor)

  std::span<const Device> devices() const noexcept { return devices_; }  // as given
  bool is_text() const noexcept { return is_text_; }                     // made from a device string

 private:
  std::vector<Device> devices_;
  bool is_text_ = false;
};

struct ValueDestination {
  PerReplica value;
  Destination destination;
};

}  // namespace onesum
