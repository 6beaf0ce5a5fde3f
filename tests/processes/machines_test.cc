// Worker processes that share machines: those of one exchange tensors through shared memory, the others over
// the network, with the bits of workers in one process. Where a worker is, ONESUM_MACHINE says.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

const char* const kSpecs[] = {"auto", "machines", "nccl/machines", "nccl/machines#2"};

// By rank; in a cluster of processes only this one's own.
std::vector<std::string> results_of_specs(const Cluster& cluster, int own) {
  std::vector<std::string> all(static_cast<std::size_t>(cluster.size()));
  for (const char* spec : kSpecs) {
    const std::vector<std::string> texts = results_of(cluster, own, spec);
    for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].append(texts[rank]).append("\n");
  }
  return all;
}

EnvironmentOf on(const std::string& machines) {  // one letter a worker
  return [machines](int rank) -> Environment {
    const std::string name(1, machines[static_cast<std::size_t>(rank)]);
    return {{"ONESUM_MACHINE", name}, {"ONESUM_TRANSPORT", "auto"}};
  };
}

TEST(MachinesOfProcesses, GiveTheSameBitsAsEmbeddedWorkers) {
  for (const std::string machines : {"aabb", "abab", "abb"}) {
    const auto size = static_cast<int>(machines.size());
    std::string found;
    for (const WorkerEnd& end : run_workers(
             size,
             [](int rank) {
               return results_of_specs(Cluster::from_environment(), rank)[static_cast<std::size_t>(rank)];
             },
             on(machines))) {
      found += end.text;
    }
    const std::string expected = run_alone([&] {
      std::string all;
      for (const std::string& text : results_of_specs(Cluster::embedded(worker_names(size), kDevices), -1))
        all += text;
      return all;
    });
    EXPECT_EQ(found, expected) << machines;
  }
}

// What `auto` makes of a sum over the whole cluster; the rest depends on the constants of the machine.
std::string choice_on(const Cluster& cluster) {
  std::vector<Device> devices;
  for (const Device& worker : cluster.workers()) {
    devices.push_back(Device("/device:CPU:0").merged_over(worker));
  }
  AllReduceCrossDeviceOps ops("auto", 0, 0, 10, cluster);
  const std::vector<ReduceSpec> specs{{DType::kFloat32, Shape{100000}, devices, devices}};
  return ops.plan(ReduceOp::kSum, specs).algorithm() == "nccl/machines" ? "machines" : "another";
}

// A part of a cluster has machines of its own.
TEST(MachinesOfProcesses, ChooseByWhereTheWorkersOfTheirClusterAre) {
  const auto work = [](int rank) {
    Cluster cluster = Cluster::from_environment();
    const std::vector<int> parted = rank == 1 ? std::vector{1} : std::vector{3, 2, 0};
    const std::vector<int> mates = rank < 2 ? std::vector{0, 1} : std::vector{2, 3};
    const std::string whole = choice_on(cluster);
    const std::string copy = choice_on(cluster.duplicate());
    const std::string part = choice_on(cluster.split(parted));
    return whole + " " + copy + " " + part + " " + choice_on(cluster.split(mates));
  };
  const std::vector<WorkerEnd> ends = run_workers(4, work, on("aabb"));
  for (int rank = 0; rank < 4; ++rank) {
    const std::string part = rank == 1 ? "another" : "machines";
    EXPECT_EQ(ends[static_cast<std::size_t>(rank)].text, "machines machines " + part + " another");
  }
}

}  // namespace
}  // namespace onesum::testing
