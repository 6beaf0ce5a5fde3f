// After the first call of a kind nothing is allocated on the run path, by any thread.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "counting.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::allocated_by;
using testing::cpus;

using Values = std::vector<PerReplica>;

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::is_counting_possible())
      GTEST_SKIP() << "NOT TESTED: sanitizers replace the allocation functions themselves";
  }

  // Nothing at all, in any of many calls.
  template <class Call>
  static void expect_none(const Call& call, std::source_location where = std::source_location::current()) {
    call();
    call();
    for (int i = 0; i < 20; ++i) {
      const testing::Allocated allocated = allocated_by(call);
      if (allocated.calls == 0) continue;
      ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
          << "call " << i << ": " << allocated.calls << " allocations, " << allocated.bytes << " bytes";
      return;
    }
  }
};

// ResNet-50's 161 gradients, each a sixteenth as long, four replicas of them.
Values resnet_gradients() {
  std::ifstream file("bench/shapes/resnet50.txt");
  Values values;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::int64_t> extents;
    std::string digits;
    for (const char c : line.substr(line.find_first_of(" \t")) + " ") {
      if (c >= '0' && c <= '9') {
        digits += c;
      } else if (!digits.empty()) {
        extents.push_back(std::stoll(digits));
        digits.clear();
      }
    }
    const std::size_t elements = Shape(std::span<const std::int64_t>(extents)).elements() / 16 + 1;
    values.push_back(testing::random_value(DType::kFloat32, Shape{static_cast<std::int64_t>(elements)},
                                           cpus(4), values.size()));
  }
  return values;
}

TEST_F(Allocation, IsCounted) {
  void* volatile kept = nullptr;
  EXPECT_EQ(allocated_by([&] { kept = std::malloc(10); }).bytes, 10U);
  std::free(kept);
  EXPECT_EQ(allocated_by([&] { kept = std::calloc(5, 4); }).bytes, 20U);
  void* volatile grown = nullptr;
  EXPECT_EQ(allocated_by([&] { grown = std::realloc(kept, 100); }).bytes, 100U);
  std::free(grown);
  EXPECT_EQ(allocated_by([&] { kept = std::aligned_alloc(64, 128); }).bytes, 128U);
  std::free(kept);
  EXPECT_GE(allocated_by([&] { kept = ::operator new(7); }).bytes, 7U);
  ::operator delete(kept);
  EXPECT_GE(allocated_by([&] { kept = ::operator new(7, std::align_val_t(64)); }).bytes, 7U);
  ::operator delete(kept, std::align_val_t(64));
  EXPECT_GE(allocated_by([&] {
              std::thread([&] {
                kept = std::malloc(1000);
                std::free(kept);
              }).join();
            }).bytes,
            1000U);
  EXPECT_EQ(allocated_by([] {}).calls, 0U);
}

TEST_F(Allocation, NoneForOneSmallTensor) {
  ReductionToOneDevice ops;
  const Values values{testing::scalars<float>({1, 2})};
  Values in_place = values;
  Values elsewhere{testing::scalars<float>({0, 0})};
  expect_none([&] { ops.batch_reduce_into(ReduceOp::kSum, values, in_place); });
  expect_none([&] { ops.batch_reduce_into(ReduceOp::kMean, values, elsewhere); });
  PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, elsewhere);
  expect_none([&] { prepared.run(); });
}

TEST_F(Allocation, NoneForTheGradientsOfAModel) {
  ReductionToOneDevice ops;
  const Values values = resnet_gradients();
  ASSERT_EQ(values.size(), 161U);
  Values in_place = values;
  Values elsewhere;
  for (const PerReplica& value : values)
    elsewhere.push_back(testing::blank_results(ReduceOp::kSum, value, cpus(4)));
  expect_none([&] { ops.batch_reduce_into(ReduceOp::kMean, values, in_place); });
  expect_none([&] { ops.batch_reduce_into(ReduceOp::kSum, values, elsewhere); });
  PreparedReduce prepared = ops.prepare(ReduceOp::kMean, values, in_place);
  expect_none([&] { prepared.run(); });
}

TEST_F(Allocation, NoneForMixedTypesAndSlices) {
  ReductionToOneDevice ops;
  Values values;
  Values results;
  for (std::size_t i = 0; i < 50; ++i) {
    const DType dtype = testing::kSummable[i % std::size(testing::kSummable)];
    values.push_back(testing::random_value(dtype, Shape{static_cast<std::int64_t>(i * i * 10)}, cpus(3), i));
    results.push_back(testing::blank_results(ReduceOp::kMean, values.back(), {"CPU:1", "CPU:7"}));
  }
  values.emplace_back(
      std::vector<Value>{testing::slices({{1}}, {4}, {}, "CPU:0"), testing::slices({{2}}, {5}, {}, "CPU:1")});
  results.emplace_back(std::vector<Value>{testing::slices({{0}, {0}}, {0, 0}, {}, "CPU:0")});
  expect_none([&] { ops.batch_reduce_into(ReduceOp::kMean, values, results); });
}

// Two sets of tensors in turn: other addresses, the same kind of call.
TEST_F(Allocation, NoneWhenAddressesChange) {
  ReductionToOneDevice ops;
  Values sets[2];
  Values results[2];
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t i = 0; i < 40; ++i) {
      sets[s].push_back(testing::random_value(DType::kFloat32,
                                              Shape{static_cast<std::int64_t>(1000 + i * 700)}, cpus(4), i));
      results[s].push_back(testing::blank_results(ReduceOp::kSum, sets[s].back(), cpus(4)));
    }
  }
  std::size_t turn = 0;
  expect_none([&] {
    ops.batch_reduce_into(ReduceOp::kSum, sets[turn % 2], results[turn % 2]);
    ++turn;
  });
}

// Handles only: what is returned, and nothing that grows with the data.
TEST_F(Allocation, OnlyHandlesForReturnedResults) {
  ReductionToOneDevice ops;
  constexpr std::size_t kPairs = 10;
  for (const std::int64_t elements : {1, 1000, 200000}) {
    std::vector<ValueDestination> pairs;
    for (std::size_t i = 0; i < kPairs; ++i) {
      const PerReplica value = testing::random_value(DType::kFloat32, Shape{elements}, cpus(4), i);
      pairs.push_back({value, value});
    }
    const auto call = [&] { ops.batch_reduce(ReduceOp::kSum, pairs); };
    call();
    call();
    const testing::Allocated allocated = allocated_by(call);
    // For each pair its list of components; for each component its handle, its shape and its device's name.
    EXPECT_LE(allocated.calls, 1 + kPairs * (1 + 4 * 3)) << elements;
    EXPECT_LE(allocated.bytes, kPairs * 4 * 1024) << elements;
  }
}

}  // namespace
}  // namespace onesum
