// Workers on two machines, and the same calls in one process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "machines/two_machines.h"
#include "processes/workers.h"

namespace onesum::testing {

inline constexpr int kMachines = 2;

// Skipped where there cannot be two machines.
class MachinesTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

// Where workers meet: an address of the first machine, and a secret.
std::string meeting_place();
Environment meeting();

// Each worker of the second half of the ranks is on the second machine, which must outlive them.
Workers start_on(const TwoMachines& machines, int per_machine, const Body& body,
                 const Environment& environment = meeting());
std::vector<WorkerEnd> run_on(const TwoMachines& machines, int per_machine, const Body& body,
                              const Environment& environment = meeting());

// Line by line.
std::string texts_of(const std::vector<WorkerEnd>& ends);

// What the function gives to each of several workers that are embedded in one process, line by line.
std::string embedded(int size, const std::function<std::vector<std::string>(const Cluster&)>& results);

// A sum that takes the cable some time, again and again.
class LargeSum {
 public:
  // `own` is the rank of this process, or -1 if it has all workers.
  LargeSum(const Cluster& cluster, int own, std::size_t elements);

  // The results of this process's workers, by rank; "none" for the others.
  std::vector<std::string> operator()();

 private:
  int size_;
  MultiWorkerAllReduce ops_;
  PerReplica value_;
};

}  // namespace onesum::testing
