#include "conformance/stage.h"

#include <utility>

#include <gtest/gtest.h>

namespace onesum::testing {

Stage::Stage(std::vector<std::string> devices_given, std::string host_given)
    : devices(std::move(devices_given)), host(std::move(host_given)) {}

Stage Stage::of_worker(int rank, int workers, std::vector<std::string> devices) {
  Stage stage(std::move(devices));
  stage.rank = rank;
  stage.workers = workers;
  stage.defaults = Device("/job:worker/task:" + std::to_string(rank));
  return stage;
}

PerReplica Stage::value(const Make& make) const {
  std::vector<Value> components;
  for (std::size_t i = 0; i < devices.size(); ++i) components.push_back(make(first() + i, devices[i]));
  return PerReplica(std::move(components));
}

std::vector<Device> Stage::complete_devices(std::span<const Value> values) const {
  std::vector<Device> complete;
  for (const Value& value : values) complete.push_back(device_of(value).canonical(defaults));
  return complete;
}

void Stage::expect_on(const DistributedValues& result, const Destination& destination) const {
  std::vector<Device> expected;
  for (const Device& device : destination.devices()) expected.push_back(device.canonical(defaults));
  EXPECT_EQ(complete_devices(result.values()), expected);
}

std::string Stage::name() const {
  std::string text;
  for (const std::string& device : devices) text += (text.empty() ? "" : ", ") + device;
  return workers == 1 ? text
                      : "worker " + std::to_string(rank) + " of " + std::to_string(workers) + " on " + text;
}

}  // namespace onesum::testing
