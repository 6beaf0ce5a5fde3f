// docs/semantics.md, 3.9, 5.10, 5.11, 6.2 to 6.6: what a class was made with is what its calls do. Which
// tensors take which algorithm, in which packs, and in which order results come back.
#include <algorithm>
#include <complex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "conformance/pack_checks.h"
#include "same_bits.h"
#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::expect_sums;
using testing::numbered;
using testing::to_own_devices;
using testing::vectors_of;
using testing::worker_names;

using Sizes = std::vector<std::size_t>;

std::string algorithm_of(CrossDeviceOps& ops, const PerReplica& value,
                         const CommunicationOptions& options = {}) {
  const Plan plan = ops.plan(ReduceOp::kSum, testing::one_pair(value, value), options);
  plan.verify();
  ops.reduce(ReduceOp::kSum, value, value, options);
  EXPECT_EQ(ops.last_call().algorithm, plan.algorithm());
  EXPECT_NE(ops.explain(ReduceOp::kSum, testing::one_pair(value, value), options).find(plan.algorithm()),
            std::string::npos);
  return std::string(plan.algorithm());
}

class Routing : public ::testing::Test {
 protected:
  testing::Quiet quiet_;
};

// 6.2
TEST_F(Routing, EachClassAsksForItsAlgorithm) {
  const PerReplica local = numbered(0, Shape{5}, cpus(3));
  NcclAllReduce nccl;
  HierarchicalCopyAllReduce hierarchical;
  AllReduceCrossDeviceOps base;
  AllReduceCrossDeviceOps direct("direct");
  EXPECT_EQ(algorithm_of(nccl, local), "nccl");
  EXPECT_EQ(algorithm_of(hierarchical, local), "hierarchical_copy");
  EXPECT_EQ(algorithm_of(base, local), "nccl");
  EXPECT_EQ(algorithm_of(direct, local), "direct");
  const std::vector<std::string> workers = worker_names(3);
  const PerReplica spread = numbered(0, Shape{50}, testing::device_names({3, 2}));
  MultiWorkerAllReduce standard(workers, 2);
  EXPECT_EQ(algorithm_of(standard, spread), "pscpu/pscpu#2");
  for (const auto* algorithms : {&testing::canonical_algorithms(), &testing::ring_algorithms()}) {
    for (const std::string& name : *algorithms) {
      MultiWorkerAllReduce ops(workers, 2, AllReduceSpec{name, 3});
      EXPECT_EQ(algorithm_of(ops, spread), name + "#3");
      if (algorithms == &testing::canonical_algorithms()) {
        EXPECT_EQ(ops.plan(ReduceOp::kSum, testing::one_pair(spread, spread)).order(), "canonical") << name;
      }
    }
  }
}

// 6.5, 9.11: limits are bytes of the unpacked tensor, inclusive.
TEST_F(Routing, SpecsTakeTensorsByTheirBytes) {
  MultiWorkerAllReduce ops(worker_names(2), 1, {{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -1}});
  const std::vector<std::string> devices = testing::device_names({2, 1});
  const auto algorithm = [&](std::int64_t elements) {
    return algorithm_of(ops, numbered(0, Shape{elements}, devices));
  };
  EXPECT_EQ(algorithm(300), "pscpu/pscpu#2");
  EXPECT_EQ(algorithm(257), "pscpu/pscpu#2");
  EXPECT_EQ(algorithm(256), "nccl#2");
  EXPECT_EQ(algorithm(1), "nccl#2");
  EXPECT_EQ(algorithm(0), "nccl#2");
  const PerReplica wide = testing::random_value(DType::kComplex128, Shape{65}, devices, 1);
  EXPECT_EQ(algorithm_of(ops, wide), "pscpu/pscpu#2");
  const std::vector<PerReplica> values = numbered(vectors_of({300, 256, 1}), devices);
  expect_sums(ops, values);
  EXPECT_EQ(ops.plan(ReduceOp::kSum, to_own_devices(values)).pack_elements(), (Sizes{300, 256, 1}));
  const std::string words = ops.explain(ReduceOp::kSum, to_own_devices(values));
  for (const char* part : {"spec 0 (nccl, up to 1024 bytes)", "spec 1 (pscpu/pscpu, without a limit)"}) {
    EXPECT_NE(words.find(part), std::string::npos) << words;
  }
}

// 6.5: also where packs are made of what falls under one spec only.
TEST_F(Routing, ResultsKeepTheOrderOfInputs) {
  for (const int packs : {0, 1, 4}) {
    MultiWorkerAllReduce ops(worker_names(2), 2, "rechd:16:pscpu#2:64:nccl/xring#3", packs);
    expect_sums(ops, numbered(vectors_of({100, 1, 16, 4, 0, 200, 5, 17, 3}), testing::device_names({2, 2})));
  }
}

// 6.3, 9.10
TEST_F(Routing, NumPacksCutsTheBatchEvenly) { testing::check_even_packs(cpus(3)); }

// 6.3: each type by itself.
TEST_F(Routing, PacksAreOfOneType) {
  NcclAllReduce ops(2);
  const PerReplica floats = testing::vectors<float>({{1, 2, 3}, {4, 5, 6}});
  const PerReplica doubles = testing::vectors<double>({{1, 2}, {3, 4}});
  const PerReplica complexes = testing::vectors<std::complex<float>>({{{1, 2}}, {{3, 4}}});
  const std::vector<PerReplica> values{floats, doubles, complexes, floats, doubles};
  EXPECT_EQ(ops.plan(ReduceOp::kSum, to_own_devices(values)).pack_elements(), (Sizes{3, 3, 2, 2, 1}));
  const std::vector<Mirrored> sums = ops.batch_reduce(ReduceOp::kSum, to_own_devices(values));
  EXPECT_EQ(contents<float>(sums[0].tensor(1)), (std::vector<float>{5, 7, 9}));
  EXPECT_EQ(contents<double>(sums[1].tensor(0)), (std::vector<double>{4, 6}));
  EXPECT_EQ(contents<std::complex<float>>(sums[2].tensor(0)), (std::vector<std::complex<float>>{{4, 6}}));
  EXPECT_EQ(contents<float>(sums[3].tensor(0)), (std::vector<float>{5, 7, 9}));
  EXPECT_EQ(contents<double>(sums[4].tensor(1)), (std::vector<double>{4, 6}));
}

// 6.3, 9.10
TEST_F(Routing, SmallTensorsAreGrouped) { testing::check_small_groups(cpus(3)); }

// 5.11
TEST_F(Routing, BytesPerPackFillsPacks) { testing::check_packs_by_bytes(cpus(3)); }

// 6.2: pairs of one device set are reduced together, whatever lies between them; a reduce to other devices is
// no all-reduce.
TEST_F(Routing, PairsAreGroupedByDestination) {
  HierarchicalCopyAllReduce ops;
  const PerReplica value = numbered(0, Shape{5}, cpus(3));
  const PerReplica two = numbered(0, Shape{7}, cpus(2));
  const std::vector<ValueDestination> pairs{{value, value}, {value, "CPU:0"}, {two, two},
                                            {value, value}, {two, "CPU:9"},   {value, "CPU:0"}};
  const Plan plan = ops.plan(ReduceOp::kSum, pairs);
  plan.verify();
  EXPECT_EQ(plan.pack_elements(), (Sizes{10, 10, 7, 7}));
  const std::string words = ops.explain(ReduceOp::kSum, pairs);
  EXPECT_NE(words.find("one_device: a reduce that is not an all-reduce works on the first device of the "
                       "destination, " +
                       testing::full_name(9)),
            std::string::npos)
      << words;
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool of_three = pairs[i].value.size() == 3;
    EXPECT_EQ(results[i].size(), pairs[i].destination.devices().size());
    EXPECT_EQ(contents<float>(results[i].tensor(0)),
              std::vector<float>(of_three ? 5 : 7, of_three ? 6.0F : 3.0F));
  }
  const Plan alone = ops.plan(ReduceOp::kSum, testing::one_pair(value, "CPU:0"));
  EXPECT_EQ(alone.algorithm(), "one_device");
  EXPECT_EQ(ops.plan(ReduceOp::kSum, testing::one_pair(value, two)).algorithm(), "one_device");
}

// 3.9
TEST_F(Routing, Numerics) {
  MultiWorkerAllReduce ops(worker_names(3), 2, "nccl/rechd");
  const testing::SameBitsBatch batch(DType::kBFloat16, 6);
  const std::vector<PerReplica> values = batch.on(testing::device_names({3, 2}));
  CommunicationOptions options;
  options.numerics = Numerics::kFast;
  const Plan fast = ops.plan(ReduceOp::kSum, to_own_devices(values), options);
  fast.verify();
  EXPECT_NE(fast.order(), "canonical");
  const std::vector<Mirrored> once = ops.batch_reduce(ReduceOp::kSum, to_own_devices(values), options);
  const std::vector<Mirrored> again = ops.batch_reduce(ReduceOp::kSum, to_own_devices(values), options);
  for (std::size_t t = 0; t < once.size(); ++t) {
    const std::vector<std::byte> first = testing::bytes_of(once[t].tensor(0));
    EXPECT_TRUE(testing::all_hold(once[t], first));
    EXPECT_TRUE(testing::all_hold(again[t], first));
  }
  options.numerics = Numerics::kExact;
  testing::expect_error([&] { ops.batch_reduce(ReduceOp::kSum, to_own_devices(values), options); },
                        ErrorCode::kUnimplemented, {"exact"});
}

// 6.6
TEST_F(Routing, AutomaticChoicesAreExplained) {
  MultiWorkerAllReduce ops(worker_names(4), 2, "auto");
  for (const std::int64_t elements : {1, 1000, 3000000}) {
    const PerReplica value = numbered(0, Shape{elements}, testing::device_names({4, 2}));
    const std::string algorithm = algorithm_of(ops, value);
    EXPECT_TRUE(algorithm.starts_with("nccl/")) << algorithm;
    const std::string words = ops.explain(ReduceOp::kSum, testing::one_pair(value, value));
    EXPECT_NE(words.find("spec 0 (auto, without a limit): "), std::string::npos) << words;
    EXPECT_NE(words.find(algorithm + " is predicted"), std::string::npos) << words;
    EXPECT_NE(words.find("runner-up"), std::string::npos) << words;
    EXPECT_NE(words.find("order of additions: canonical"), std::string::npos) << words;
  }
  expect_sums(ops, numbered(vectors_of({5, 70000, 0, 3}), testing::device_names({4, 2})));
}

}  // namespace
}  // namespace onesum
