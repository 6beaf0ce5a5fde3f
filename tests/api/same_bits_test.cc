// docs/semantics.md, 3.3, 3.10, 6.3 to 6.6: one value, spread over workers and devices in any way, reduced by
// any algorithm without a ring, in any shards and packs, has the same bits. A part of the grid; the rest is
// in same_bits_full_test.cc.
#include "same_bits.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::device_name;
using testing::device_names;
using testing::Layout;
using testing::SameBitsBatch;
using testing::Way;

class SameBits : public ::testing::Test {
 protected:
  testing::Quiet quiet_;
  testing::SameBitsTurns turns_;
};

TEST_F(SameBits, OfFloatsWhateverAlgorithmAndLayout) {
  const std::vector<std::string> algorithms{
      "nccl",        "rechd",       "pscpu",       "psgpu",       "direct",
      "nccl/rechd",  "pscpu/pscpu", "nccl/direct", "psgpu/pscpu", "hierarchical_copy",
      "rechd/psgpu", "nccl/pscpu",  "direct/nccl", "rechd/rechd", "hierarchical_copy/hierarchical_copy"};
  std::size_t turn = 0;
  for (const int n : testing::kSameBitsReplicas) {
    for (const DType dtype : testing::kSameBitsFloats) {
      const SameBitsBatch batch(dtype, static_cast<std::size_t>(n));
      for (const Layout& layout : testing::layouts_of(n)) {
        for (int i = 0; i < 3; ++i) {
          const std::string& algorithm = algorithms[turn++ % algorithms.size()];
          testing::expect_canonical_bits(turns_.next(algorithm, layout, dtype), batch);
        }
      }
    }
  }
}

TEST_F(SameBits, OfIntegersAreExact) {
  const std::vector<std::string> algorithms{"nccl/rechd", "pscpu/pscpu", "xring", "direct", "nccl/xring"};
  std::size_t turn = 0;
  for (const int n : {6, 15}) {
    for (const DType dtype : testing::kSameBitsIntegers) {
      const SameBitsBatch batch(dtype, static_cast<std::size_t>(n));
      for (const Layout& layout : testing::layouts_of(n)) {
        for (int i = 0; i < 2; ++i) {
          const std::string& algorithm = algorithms[turn++ % algorithms.size()];
          testing::expect_canonical_bits(turns_.next(algorithm, layout, dtype), batch);
        }
      }
    }
  }
}

// Another order than the canonical one, but one: that of the plan, on every device and in every run.
TEST_F(SameBits, OfRingsAreThoseOfTheirPlan) {
  const std::vector<std::string> algorithms{"xring",       "nccl/xring", "xring/direct", "xring/xring",
                                            "pscpu/xring", "direct",     "nccl/rechd"};
  std::size_t turn = 0;
  for (const int n : {6, 8, 15}) {
    for (const DType dtype : testing::kSameBitsFloats) {
      const SameBitsBatch batch(dtype, static_cast<std::size_t>(n));
      for (const Layout& layout : testing::layouts_of(n)) {
        const std::string& algorithm = algorithms[turn++ % algorithms.size()];
        testing::expect_simulated_bits(turns_.next(algorithm, layout, dtype), batch);
      }
    }
  }
}

// The contents show it: a ring's order gives other bits than the canonical one.
TEST_F(SameBits, AreNotThoseOfARing) {
  for (const DType dtype : testing::kSameBitsFloats) {
    const SameBitsBatch batch(dtype, 6);
    MultiWorkerAllReduce ring(testing::worker_names(2), 3, "xring");
    const std::vector<PerReplica> values = batch.on(device_names({2, 3}));
    EXPECT_FALSE(testing::all_hold(testing::reduced(ring, ReduceOp::kSum, values, Way::kReturned),
                                   batch.expected(ReduceOp::kSum)))
        << to_string(dtype);
  }
}

// 1.9, 6.4: replicas count as the value lists them, and results come as the destination does.
TEST_F(SameBits, WhateverOrderOfDevices) {
  const Layout layout{3, 4};
  std::vector<std::string> listed = device_names(layout);
  std::vector<std::vector<std::string>> orders;
  orders.emplace_back(listed.rbegin(), listed.rend());
  std::vector<std::string> interleaved;
  for (int g = 0; g < layout.devices; ++g) {
    for (int w = 0; w < layout.workers; ++w) interleaved.push_back(device_name(w, g));
  }
  orders.push_back(interleaved);
  std::vector<std::string> strided;
  for (std::size_t i = 0; i < listed.size(); ++i) strided.push_back(listed[i * 5 % listed.size()]);
  orders.push_back(strided);
  const SameBitsBatch batch(DType::kFloat32, 12);
  for (const std::string& algorithm : testing::canonical_algorithms()) {
    MultiWorkerAllReduce ops(testing::worker_names(3), 4, AllReduceSpec{algorithm, 2}, 1);
    const std::vector<std::string>& order = orders[algorithm.size() % orders.size()];
    const std::vector<PerReplica> values = batch.on(order);
    const std::vector<PerReplica> elsewhere = batch.on(orders[(algorithm.size() + 1) % orders.size()]);
    std::vector<ValueDestination> pairs;
    for (std::size_t t = 0; t < values.size(); ++t) {
      pairs.push_back({values[t], t % 2 == 0 ? elsewhere[t] : values[t]});
    }
    const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kMean, pairs);
    for (std::size_t t = 0; t < results.size(); ++t) {
      EXPECT_EQ(testing::devices_of(results[t]), testing::devices_of(t % 2 == 0 ? elsewhere[t] : values[t]));
      EXPECT_TRUE(testing::all_hold(results[t], batch.expected(ReduceOp::kMean)[t])) << algorithm;
    }
  }
}

// A value on some devices of every worker, and one on some workers that goes elsewhere.
TEST_F(SameBits, OnPartOfTheDevices) {
  const std::vector<std::string> uneven{device_name(2, 0), device_name(0, 1), device_name(0, 0),
                                        device_name(1, 2), device_name(1, 1), device_name(1, 0)};
  const std::vector<std::string> two_workers{device_name(2, 0), device_name(0, 1), device_name(0, 0),
                                             device_name(2, 2), device_name(2, 1), device_name(0, 2)};
  const SameBitsBatch batch(DType::kBFloat16, 6);
  for (const std::string& algorithm : testing::canonical_algorithms()) {
    SCOPED_TRACE(algorithm);
    MultiWorkerAllReduce ops(testing::worker_names(3), 3, AllReduceSpec{algorithm, 3});
    EXPECT_TRUE(
        testing::all_hold(testing::reduced(ops, ReduceOp::kSum, batch.on(uneven), Way::kInPlacePermuted),
                          batch.expected(ReduceOp::kSum)));
    std::vector<ValueDestination> pairs;
    for (const PerReplica& value : batch.on(two_workers)) pairs.push_back({value, "CPU:1"});
    const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs);
    for (std::size_t t = 0; t < results.size(); ++t) {
      EXPECT_EQ(results[t].size(), 3U);
      EXPECT_TRUE(testing::all_hold(results[t], batch.expected(ReduceOp::kSum)[t]));
    }
  }
}

}  // namespace
}  // namespace onesum
