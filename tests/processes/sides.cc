#include "sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int uneven_count(int worker) { return worker % 2 == 0 ? 2 : 1; }

std::string form_of(const Tensor& tensor) {
  return std::string(to_string(tensor.dtype())) + tensor.shape().to_string();
}

std::string form_of(const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return form_of(*tensor);
  const auto& slices = std::get<IndexedSlices>(value);
  return form_of(slices.values) + " at " + form_of(slices.indices) + " of " +
         (slices.dense_shape ? slices.dense_shape->to_string() : "unknown");
}

// What worker `rank` got.
std::string text_of(const Mirrored& result, int rank) {
  std::string text;
  for (const Value& value : result.values()) {
    const auto* tensor = std::get_if<Tensor>(&value);
    const Device& device =
        tensor != nullptr ? tensor->device() : std::get<IndexedSlices>(value).values.device();
    if (device.task() != rank) continue;
    text += form_of(value) + ", ";
  }
  return text + digest_of_worker(result, rank) + "\n";
}

}  // namespace

std::string own_device(int worker, int device) {
  return "/job:worker/replica:0/task:" + std::to_string(worker) + "/device:CPU:" + std::to_string(device);
}

std::vector<Device> Side::uneven_devices() const {
  std::vector<Device> devices;
  for (int worker = first(); worker < first() + count(); ++worker) {
    for (int device = 0; device < uneven_count(worker); ++device)
      devices.emplace_back(own_device(worker, device));
  }
  return devices;
}

PerReplica Side::uneven(const std::function<Value(int replica, const Device& device)>& make) const {
  int replica = 0;
  for (int worker = 0; worker < first(); ++worker) replica += uneven_count(worker);
  std::vector<Value> components;
  for (const Device& device : uneven_devices()) components.push_back(make(replica++, device));
  return PerReplica(std::move(components));
}

std::string expect_same(int workers, const std::function<std::vector<Mirrored>(const Side&)>& call,
                        const std::string& transport) {
  const auto texts = [&](const Side& side) {
    std::string text;
    const std::vector<Mirrored> results = call(side);
    for (int rank = side.first(); rank < side.first() + side.count(); ++rank) {
      for (const Mirrored& result : results) text += text_of(result, rank);
    }
    return text;
  };
  std::string found;
  for (const WorkerEnd& end :
       run_workers(workers, [&](int rank) { return texts({Cluster::from_environment(), rank, workers}); },
                   {{"ONESUM_TRANSPORT", transport}})) {
    found += end.text;
  }
  EXPECT_THAT(found, AllOf(Not(HasSubstr("error ")), Not(HasSubstr("exception"))));
  EXPECT_EQ(found, run_alone([&] {
              return texts({Cluster::embedded(worker_names(workers), kDevices), -1, workers});
            }));
  return found;
}

}  // namespace onesum::testing
