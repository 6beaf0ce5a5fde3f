#include "machines/on_machines.h"

#include "processes/calls.h"

namespace onesum::testing {

void MachinesTest::SetUp() {
  if (const std::string obstacle = TwoMachines::obstacle(); !obstacle.empty()) {
    GTEST_SKIP() << "SKIPPED: " << obstacle;
  }
}

std::string meeting_place() { return TwoMachines::address_of(0) + ":29000"; }

Environment meeting() {
  return {{"ONESUM_ADDRESS", meeting_place()}, {"ONESUM_SECRET", "known on both machines, and nowhere else"}};
}

Workers start_on(const TwoMachines& machines, int per_machine, const Body& body,
                 const Environment& environment) {
  return Workers(
      per_machine * kMachines,
      [&machines, per_machine, body](int rank) {
        machines.enter(rank / per_machine);
        return body(rank);
      },
      environment);
}

std::vector<WorkerEnd> run_on(const TwoMachines& machines, int per_machine, const Body& body,
                              const Environment& environment) {
  return start_on(machines, per_machine, body, environment).wait();
}

std::string texts_of(const std::vector<WorkerEnd>& ends) {
  std::string all;
  for (const WorkerEnd& end : ends) all += end.text + "\n";
  return all;
}

std::string embedded(int size, const std::function<std::vector<std::string>(const Cluster&)>& results) {
  return run_alone([&] {
    std::string all;
    for (const std::string& text : results(Cluster::embedded(worker_names(size), kDevices)))
      all += text + "\n";
    return all;
  });
}

LargeSum::LargeSum(const Cluster& cluster, int own, std::size_t elements)
    : size_(cluster.size()),
      ops_(worker_names(size_), kDevices, AllReduceSpecs("auto"), 0, 0, 10, cluster),
      value_(replicas(own < 0 ? 0 : own, own < 0 ? size_ : 1, DType::kFloat32, elements, 1)) {}

std::vector<std::string> LargeSum::operator()() {
  const Mirrored result = ops_.reduce(ReduceOp::kSum, value_, Destination(value_));
  std::vector<std::string> texts;
  for (int rank = 0; rank < size_; ++rank) texts.push_back(digest_of_worker(result, rank));
  return texts;
}

}  // namespace onesum::testing
