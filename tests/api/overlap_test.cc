// docs/semantics.md, 5.7 and 8.15. Results that share memory with anything but the replica they replace are
// refused, naming both; nothing is written.
#include "api/overlap.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::expect_invalid;
using Values = std::vector<PerReplica>;

class Overlap : public ::testing::Test {
 protected:
  Overlap() {
    for (std::size_t i = 0; i < block_.size(); ++i) block_[i] = static_cast<float>(i);
  }

  // Four elements from `begin`, on CPU:device.
  Tensor part(std::size_t begin, std::size_t device) {
    return Tensor::borrow(block_.data() + begin, DType::kFloat32, Shape{4}, testing::cpus(device + 1).back());
  }
  static PerReplica list(std::vector<Tensor> tensors) { return PerReplica(std::move(tensors)); }

  void refuse(const Values& values, const Values& given_results,
              std::initializer_list<std::string_view> parts,
              std::source_location where = std::source_location::current()) {
    Values results = given_results;
    const std::vector<float> before = block_;
    expect_invalid([&] { ops_.batch_reduce_into(ReduceOp::kSum, values, results); }, parts, where);
    expect_invalid([&] { ops_.batch_reduce_into(ReduceOp::kSum, values, results); }, parts,
                   where);  // cached by now
    expect_invalid([&] { ops_.prepare(ReduceOp::kSum, values, results); }, parts, where);
    EXPECT_EQ(block_, before);
  }

  std::vector<float> block_ = std::vector<float>(400);
  ReductionToOneDevice ops_;
};

TEST_F(Overlap, OfTwoResults) {
  const Values values{list({part(0, 0), part(10, 1)})};
  refuse(values, {list({part(20, 0), part(20, 1)})}, {"pair 0: result on", "CPU:0", "CPU:1", "share memory"});
  refuse(values, {list({part(20, 0), part(23, 1)})}, {"pair 0: result on", "CPU:0", "CPU:1", "share memory"});
  refuse(values, {list({part(26, 0), part(23, 1)})}, {"pair 0: result on", "CPU:0", "CPU:1", "share memory"});
}

TEST_F(Overlap, OfResultsOfTwoPairs) {
  const Values values{list({part(0, 0), part(10, 1)}), list({part(30, 0), part(40, 1)})};
  refuse(values, {list({part(20, 0)}), list({part(20, 0)})},
         {"pair 0: result on", "pair 1: result on", "share memory"});
  refuse(values, {values[0], list({part(2, 3)})},
         {"pair 0: result on", "pair 1: result on", "CPU:3", "share memory"});
}

TEST_F(Overlap, WithTheOwnReplicaShifted) {
  const Values values{list({part(0, 0), part(10, 1)})};
  refuse(values, {list({part(1, 0), part(10, 1)})}, {"pair 0: result on", "pair 0: replica on", "CPU:0"});
  refuse(values, {list({part(0, 0), part(9, 1)})}, {"pair 0: result on", "pair 0: replica on", "CPU:1"});
}

TEST_F(Overlap, WithAReplicaOnAnotherDevice) {
  const Values values{list({part(0, 0), part(10, 1)})};
  refuse(values, {list({part(10, 0), part(20, 1)})},
         {"pair 0: result on", "pair 0: replica on", "CPU:0", "CPU:1"});
  refuse(values, {list({part(10, 0), part(0, 1)})}, {"pair 0: result on", "pair 0: replica on"});
  refuse(values, {list({part(0, 7)})}, {"pair 0: result on", "CPU:7", "pair 0: replica on", "CPU:0"});
  refuse({list({part(0, 0), part(0, 1)})}, {list({part(0, 0)})},
         {"pair 0: result on", "pair 0: replica on", "CPU:1"});
}

TEST_F(Overlap, WithAnInputOfAnotherPair) {
  const Values values{list({part(0, 0), part(10, 1)}), list({part(30, 0), part(40, 1)})};
  refuse(values, {list({part(30, 0)}), list({part(60, 0)})},
         {"pair 0: result on", "pair 1: replica on", "CPU:0"});
  refuse(values, {list({part(50, 0)}), list({part(13, 0)})},
         {"pair 1: result on", "pair 0: replica on", "CPU:1"});
  const Values shared{list({part(0, 0), part(10, 1)}), list({part(0, 0), part(40, 1)})};
  refuse(shared, {shared[0], list({part(60, 0)})}, {"pair 0: result on", "pair 1: replica on", "CPU:0"});
}

TEST_F(Overlap, OfDifferentTypes) {
  const Values values{list({part(0, 0)}),
                      list({Tensor::borrow(block_.data() + 100, DType::kInt64, Shape{3}, "CPU:0")})};
  refuse(
      values,
      {list({part(105, 0)}), list({Tensor::borrow(block_.data() + 200, DType::kInt64, Shape{3}, "CPU:0")})},
      {"pair 0: result on", "pair 1: replica on"});
}

TEST_F(Overlap, OfALongTensorAroundShortOnes) {
  const Tensor wide = Tensor::borrow(block_.data(), DType::kFloat32, Shape{300}, "CPU:0");
  const Values values{PerReplica(wide), list({part(310, 0)}), list({part(320, 0)})};
  refuse(values,
         {list({Tensor::from<float>(std::span<const float>(std::vector<float>(300)), {300}, "CPU:0")}),
          list({part(290, 0)}), list({part(330, 0)})},
         {"pair 1: result on", "pair 0: replica on"});
}

TEST_F(Overlap, OfSlices) {
  const auto rows = [&](std::size_t values, const Tensor& indices, std::int64_t count) {
    return IndexedSlices{
        Tensor::borrow(block_.data() + values, DType::kFloat32, Shape{count, 1}, "CPU:0"), indices, {}};
  };
  const auto indices = [](std::int64_t count) {
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(count));
    return testing::vector_of(zeros, "CPU:0");
  };
  const PerReplica value(rows(0, indices(2), 2));
  refuse({value}, {PerReplica(rows(1, indices(2), 2))}, {"pair 0: result on", "pair 0: replica on"});
  refuse({value}, {PerReplica(rows(0, indices(2), 2))}, {"pair 0: result on", "pair 0: replica on"});
  refuse({value}, {PerReplica(rows(10, value.slices().indices, 2))},
         {"pair 0: result on", "pair 0: replica on"});
}

TEST_F(Overlap, LegalNeighbours) {
  const Values values{list({part(0, 0), part(4, 1)}), list({part(8, 0), part(12, 1)})};
  Values results{list({part(16, 0), part(20, 1)}), values[1]};
  ops_.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_EQ(block_[16], 0 + 4);
  EXPECT_EQ(block_[23], 3 + 7);
  EXPECT_EQ(block_[8], 8 + 12);
  EXPECT_EQ(block_[15], 11 + 15);
  EXPECT_EQ(block_[7], 7);
  EXPECT_EQ(block_[24], 24);
}

TEST_F(Overlap, InputsMayOverlapInputs) {
  const Values values{list({part(0, 0), part(2, 1)}), list({part(0, 0), part(0, 1)}), list({part(1, 3)})};
  Values results{list({part(100, 0)}), list({part(110, 0), part(120, 1)}), list({part(130, 0)})};
  ops_.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_EQ(block_[100], 2);
  EXPECT_EQ(block_[113], 6);
  EXPECT_EQ(block_[121], 2);
  EXPECT_EQ(block_[130], 1);
}

TEST_F(Overlap, EmptyTensorsOverlapNothing) {
  const auto none = [&](std::size_t begin, const char* device) {
    return Tensor::borrow(block_.data() + begin, DType::kFloat32, Shape{0}, device);
  };
  const Values values{list({none(1, "CPU:0"), none(1, "CPU:1")}), list({part(0, 0)})};
  Values results{list({none(1, "CPU:1"), none(1, "CPU:0")}), list({part(50, 0)})};
  ops_.batch_reduce_into(ReduceOp::kSum, values, results);
  EXPECT_EQ(block_[53], 3);
}

// A refused call must not leave its addresses behind for the next one.
TEST_F(Overlap, AfterARefusalTheNextCallIsRight) {
  const Values values{list({part(0, 0), part(10, 1)})};
  Values good{list({part(20, 0), part(30, 1)})};
  Values bad{list({part(20, 0), part(21, 1)})};
  for (int round = 0; round < 3; ++round) {
    ops_.batch_reduce_into(ReduceOp::kSum, values, good);
    EXPECT_EQ(block_[23], 3 + 13);
    EXPECT_EQ(block_[33], 3 + 13);
    expect_invalid([&] { ops_.batch_reduce_into(ReduceOp::kSum, values, bad); }, {"share memory"});
    std::fill(block_.begin() + 20, block_.begin() + 40, 0.0F);
  }
}

// The search itself, against comparing everything with everything.
TEST(OverlapCheck, FindsWhatAPairwiseSearchFinds) {
  std::uint64_t state = 12345;
  const auto random = [&](std::uint64_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % bound;
  };
  std::vector<std::byte> memory(256);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t slots = 2 + random(6);
    std::vector<api::OverlapCheck::Use> uses;
    std::vector<std::byte*> bases;
    for (std::size_t i = 0; i < slots; ++i) {
      uses.push_back({random(8), random(24), random(3) == 0, false});
      bases.push_back(memory.data() + random(220));
    }
    const auto share_memory = [&](std::size_t i, std::size_t j) {
      const std::byte* const first = bases[i] + uses[i].offset;
      const std::byte* const second = bases[j] + uses[j].offset;
      return first < second + uses[j].bytes && second < first + uses[i].bytes;
    };
    bool expected = false;
    for (std::size_t i = 0; i < slots; ++i) {
      for (std::size_t j = i + 1; j < slots; ++j) {
        expected |= share_memory(i, j) && uses[i].bytes > 0 && uses[j].bytes > 0 &&
                    (uses[i].is_result || uses[j].is_result);
      }
    }
    api::OverlapCheck check(uses);
    for (int again = 0; again < 2; ++again) {
      const auto found = check.find(bases);
      ASSERT_EQ(found.has_value(), expected) << round;
      if (!found) continue;
      ++refused;
      const auto [i, j] = *found;
      EXPECT_TRUE(uses[i].is_result || uses[j].is_result);
      EXPECT_TRUE(share_memory(i, j));
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace onesum
