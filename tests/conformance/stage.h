// Where a check takes place: the devices that its replicas are on. All of them are this process's, or it is
// one of several worker processes that make the check together.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <onesum/cross_device_ops.h>

namespace onesum::testing {

struct Stage {
  // All replicas here.
  explicit Stage(std::vector<std::string> devices, std::string host = "CPU:0");
  // Worker `rank` of so many, each of which has as many replicas, on devices of its own.
  static Stage of_worker(int rank, int workers, std::vector<std::string> devices);

  std::vector<std::string> devices;  // of the replicas here
  std::string host;                  // a CPU, where results are wanted besides
  Device defaults;                   // what completes these
  int rank = 0;
  int workers = 1;

  std::size_t first() const { return static_cast<std::size_t>(rank) * devices.size(); }
  // Of all processes.
  std::size_t replicas() const { return static_cast<std::size_t>(workers) * devices.size(); }

  // A component on each device; replicas are numbered over all processes.
  using Make = std::function<Value(std::size_t replica, const Device& device)>;
  PerReplica value(const Make& make) const;
  // The devices that `values` has components on here, complete.
  std::vector<Device> complete_devices(std::span<const Value> values) const;
  // One component, on each device of `destination`, in its order.
  void expect_on(const DistributedValues& result, const Destination& destination) const;

  std::string name() const;
};

}  // namespace onesum::testing
