// docs/semantics.md, 3.3 and 5.4. Where values lie in memory, on which devices, and with which others in a
// batch, makes no difference to their bits.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/ways.h"
#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::all_hold;
using testing::bytes_of;
using testing::cpus;
using testing::Fill;
using testing::GuardedMemory;
using testing::random_value;
using testing::simulated;
using testing::Way;

constexpr ReduceOp kBoth[] = {ReduceOp::kSum, ReduceOp::kMean};

// Borrowed memory between guards, at any offset from alignment.
struct GuardedValue {
  GuardedValue(DType dtype, const Shape& shape, std::size_t replicas, std::size_t offset) {
    std::vector<Tensor> tensors;
    memory.reserve(replicas);
    for (std::size_t r = 0; r < replicas; ++r) {
      memory.emplace_back(shape.elements() * size_of(dtype), offset * (r + 1));
      testing::fill(memory.back().span(), dtype, Fill::kWild, r + 1);
      tensors.push_back(Tensor::borrow(memory.back().data(), dtype, shape, cpus(r + 1).back()));
    }
    value.emplace_back(std::move(tensors));
  }
  bool is_intact() const {
    return std::all_of(memory.begin(), memory.end(), [](const GuardedMemory& m) { return m.is_intact(); });
  }
  std::vector<GuardedMemory> memory;
  std::vector<PerReplica> value;
};

TEST(Layout, AnyAlignment) {
  ReductionToOneDevice ops;
  for (const DType dtype : testing::kSummable) {
    for (const std::size_t offset : {1U, 2U, 3U, 7U, 13U, 31U}) {
      for (const std::int64_t elements : {1, 5, 64, 333, 70001}) {
        if (elements > 1000 && offset != 7) continue;
        const ReduceOp op = offset % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean;
        GuardedValue values(dtype, Shape{elements}, 3, offset);
        GuardedValue results(result_dtype(op, dtype), Shape{elements}, 3, offset + 1);
        const std::vector<std::byte> expected = simulated(ops, op, values.value[0], values.value[0]);
        const std::vector<std::byte> before = bytes_of(values.value[0].tensor(1));
        ops.batch_reduce_into(op, values.value, results.value);
        ASSERT_TRUE(all_hold(results.value[0], expected)) << to_string(dtype) << " offset " << offset;
        ASSERT_EQ(bytes_of(values.value[0].tensor(1)), before);
        ASSERT_TRUE(values.is_intact() && results.is_intact()) << to_string(dtype) << " offset " << offset;
        if (result_dtype(op, dtype) != dtype) continue;
        std::vector<PerReplica> in_place = values.value;
        ops.batch_reduce_into(op, values.value, in_place);
        ASSERT_TRUE(all_hold(values.value[0], expected)) << to_string(dtype) << " offset " << offset;
        ASSERT_TRUE(values.is_intact());
      }
    }
  }
}

TEST(Layout, NeighboursInOneBlock) {
  ReductionToOneDevice ops;
  std::vector<float> block(8 * 1000);
  testing::fill(std::as_writable_bytes(std::span(block)), DType::kFloat32, Fill::kPlain, 5);
  const auto part = [&](std::size_t i, const char* device) {
    return Tensor::borrow(block.data() + i * 1000, DType::kFloat32, Shape{1000}, device);
  };
  const std::vector<PerReplica> values{
      PerReplica(std::vector<Tensor>{part(0, "CPU:0"), part(5, "CPU:1"), part(1, "CPU:2")})};
  std::vector<PerReplica> results{
      PerReplica(std::vector<Tensor>{part(2, "CPU:0"), part(4, "CPU:1"), part(6, "CPU:2")})};
  const std::vector<float> before = block;
  const std::vector<std::byte> expected = simulated(ops, ReduceOp::kMean, values[0], values[0]);
  ops.batch_reduce_into(ReduceOp::kMean, values, results);
  EXPECT_TRUE(all_hold(results[0], expected));
  for (const std::size_t untouched : {0U, 1U, 3U, 5U, 7U}) {
    const auto begin = static_cast<std::ptrdiff_t>(untouched * 1000);
    EXPECT_TRUE(std::equal(before.begin() + begin, before.begin() + begin + 1000, block.begin() + begin))
        << untouched;
  }
}

TEST(Layout, PermutedDevicesGiveTheSameBits) {
  ReductionToOneDevice ops;
  std::vector<std::string> devices = cpus(7);
  const PerReplica value = random_value(DType::kFloat32, Shape{1501}, devices, 3);
  const std::vector<std::byte> expected = simulated(ops, ReduceOp::kSum, value, "CPU:0");
  for (int round = 0; round < 5; ++round) {
    std::rotate(devices.begin(), devices.begin() + 2, devices.end());
    std::swap(devices[1], devices[4]);
    const PerReplica moved = random_value(DType::kFloat32, Shape{1501}, devices, 3);
    const Mirrored result = ops.reduce(ReduceOp::kSum, moved, value);
    EXPECT_EQ(testing::devices_of(result), testing::devices_of(value));
    EXPECT_TRUE(all_hold(result, expected));
  }
}

TEST(Layout, DestinationsMakeNoDifference) {
  ReductionToOneDevice ops;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt16}) {
    const PerReplica value = random_value(dtype, Shape{40009}, cpus(5), 8);
    for (const ReduceOp op : kBoth) {
      const std::vector<std::byte> expected = simulated(ops, op, value, "CPU:0");
      const std::vector<std::string> lists[] = {{"CPU:3"},
                                                {"CPU:9"},
                                                {"CPU:4", "CPU:1"},
                                                {"CPU:9", "CPU:8", "CPU:7"},
                                                {"CPU:6", "CPU:0", "CPU:5", "CPU:1", "CPU:2", "CPU:3"}};
      for (const std::vector<std::string>& devices : lists) {
        std::vector<PerReplica> results{testing::blank_results(op, value, devices)};
        EXPECT_TRUE(all_hold(ops.reduce(op, value, results[0]), expected));
        ops.batch_reduce_into(op, std::vector{value}, results);
        EXPECT_TRUE(all_hold(results[0], expected));
      }
    }
  }
}

// Tensors of many types and sizes, some of them empty, in one batch.
std::vector<PerReplica> mixed_batch(std::size_t count, std::size_t replicas) {
  constexpr std::int64_t kSizes[] = {1, 0, 7, 64, 1000, 33, 4099, 2, 100003, 256};
  std::vector<PerReplica> values;
  for (std::size_t i = 0; i < count; ++i) {
    const DType dtype = testing::kSummable[(i * 5) % std::size(testing::kSummable)];
    values.push_back(random_value(dtype, Shape{kSizes[i % std::size(kSizes)]}, cpus(replicas), i + 1));
  }
  return values;
}

TEST(Layout, ABatchGivesEachValueTheBitsItHasAlone) {
  for (const std::size_t replicas : {1U, 3U, 4U}) {
    ReductionToOneDevice ops;
    const std::vector<PerReplica> values = mixed_batch(90, replicas);
    for (const ReduceOp op : kBoth) {
      const std::vector<PerReplica> returned = testing::reduced(ops, op, values, Way::kReturned);
      const std::vector<PerReplica> again = testing::reduced(ops, op, values, Way::kAsync);
      const std::vector<PerReplica> into = testing::reduced(ops, op, values, Way::kInto);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::vector<std::byte> expected = simulated(ops, op, values[i], values[i]);
        ASSERT_TRUE(all_hold(returned[i], expected)) << "value " << i;
        ASSERT_TRUE(all_hold(again[i], expected)) << "value " << i;
        ASSERT_TRUE(all_hold(into[i], expected)) << "value " << i;
        const std::vector<PerReplica> alone = testing::reduced(ops, op, {values[i]}, Way::kReturned);
        ASSERT_TRUE(all_hold(alone[0], expected)) << "value " << i;
      }
    }
  }
}

TEST(Layout, AShuffledBatchAndDifferentDestinationsKeepOrder) {
  ReductionToOneDevice ops;
  const std::vector<PerReplica> values = mixed_batch(60, 3);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  for (int round = 0; round < 3; ++round) {
    std::rotate(order.begin(), order.begin() + 17, order.end());
    std::reverse(order.begin() + 5, order.begin() + 30);
    std::vector<ValueDestination> pairs;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const PerReplica& value = values[order[i]];
      if (i % 3 == 0) {
        pairs.push_back({value, value});
      } else {
        pairs.push_back({value, i % 3 == 1 ? "CPU:1" : "CPU:8"});
      }
    }
    const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs);
    ASSERT_EQ(results.size(), pairs.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(results[i].size(), pairs[i].destination.devices().size());
      ASSERT_TRUE(all_hold(results[i], simulated(ops, ReduceOp::kSum, values[order[i]], "CPU:0"))) << i;
    }
  }
}

}  // namespace
}  // namespace onesum
