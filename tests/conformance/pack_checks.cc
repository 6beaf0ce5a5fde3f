#include "conformance/pack_checks.h"

#include <utility>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "support/tensors.h"

namespace onesum::testing {
namespace {

using Sizes = std::vector<std::size_t>;

// The packs that a class makes of these shapes; the sums are right besides.
Sizes packs_of(CrossDeviceOps& ops, const std::vector<std::string>& devices, const std::vector<Shape>& shapes,
               const CommunicationOptions& options = {}) {
  const std::vector<PerReplica> values = numbered(shapes, devices);
  expect_sums(ops, values, options);
  return ops.plan(ReduceOp::kSum, to_own_devices(values), options).pack_elements();
}

}  // namespace

PerReplica numbered(std::size_t t, const Shape& shape, const std::vector<std::string>& devices) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < devices.size(); ++r) {
    const std::vector<float> numbers(shape.elements(), static_cast<float>(1000 * t + r + 1));
    tensors.push_back(Tensor::from<float>(std::span<const float>(numbers), shape, Device(devices[r])));
  }
  return PerReplica(std::move(tensors));
}

std::vector<PerReplica> numbered(const std::vector<Shape>& shapes, const std::vector<std::string>& devices) {
  std::vector<PerReplica> values;
  for (std::size_t t = 0; t < shapes.size(); ++t) values.push_back(numbered(t, shapes[t], devices));
  return values;
}

std::vector<Shape> vectors_of(std::initializer_list<std::int64_t> lengths) {
  std::vector<Shape> shapes;
  for (const std::int64_t length : lengths) shapes.push_back(Shape{length});
  return shapes;
}

void expect_sums(CrossDeviceOps& ops, const std::vector<PerReplica>& values,
                 const CommunicationOptions& options) {
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, to_own_devices(values), options);
  ASSERT_EQ(results.size(), values.size());
  for (std::size_t t = 0; t < values.size(); ++t) {
    const std::size_t n = values[t].size();
    const std::size_t replicas = n * (n + 1) / 2;  // the sum of their numbers
    const auto sum = static_cast<float>(n * 1000 * t + replicas);
    for (std::size_t d = 0; d < n; ++d) {
      EXPECT_EQ(results[t].tensor(d).shape(), values[t].tensor(0).shape());
      EXPECT_EQ(contents<float>(results[t].tensor(d)),
                std::vector<float>(values[t].tensor(0).shape().elements(), sum))
          << "tensor " << t;
    }
  }
}

void check_even_packs(const std::vector<std::string>& devices) {
  const std::vector<Shape> eleven{Shape{2, 3}, Shape{4}, Shape{}};
  const auto packs = [&](int num_packs, const std::vector<Shape>& shapes) {
    HierarchicalCopyAllReduce ops(num_packs);
    return packs_of(ops, devices, shapes);
  };
  EXPECT_EQ(packs(0, eleven), (Sizes{6, 4, 1}));
  EXPECT_EQ(packs(1, eleven), Sizes{11});
  EXPECT_EQ(packs(3, eleven), (Sizes{3, 3, 5}));
  EXPECT_EQ(packs(4, eleven), (Sizes{2, 2, 2, 5}));
  EXPECT_EQ(packs(20, eleven), Sizes{11});
  EXPECT_EQ(packs(8, vectors_of({2})), Sizes{2});
  EXPECT_EQ(packs(8, vectors_of({5, 3})), Sizes(8, 1));
  EXPECT_EQ(packs(3, vectors_of({0})), Sizes{0});
}

void check_small_groups(const std::vector<std::string>& devices) {
  const auto packs = [&](std::int64_t max_bytes, int max_group, const std::vector<Shape>& shapes) {
    AllReduceCrossDeviceOps ops("hierarchical_copy", 0, max_bytes, max_group);
    return packs_of(ops, devices, shapes);
  };
  const std::vector<Shape> four{Shape{4}, Shape{4}, Shape{3, 3}, Shape{3, 3}};
  EXPECT_EQ(packs(12, 10, four), (Sizes{4, 4, 9, 9}));
  EXPECT_EQ(packs(16, 10, four), (Sizes{8, 9, 9}));
  EXPECT_EQ(packs(256, 10, four), Sizes{26});
  EXPECT_EQ(packs(256, 0, four), (Sizes{4, 4, 9, 9}));
  EXPECT_EQ(packs(40, 10, {Shape{8}, Shape{3, 3}, Shape{12}, Shape{5, 5, 5}}), (Sizes{17, 12, 125}));
  EXPECT_EQ(packs(40, 10, {Shape{5, 5, 5}, Shape{2, 3}, Shape{5}}), (Sizes{125, 11}));
  EXPECT_EQ(packs(40, 10, {Shape{5, 5, 5}, Shape{2, 3}, Shape{1, 5}, Shape{7}, Shape{100}}),
            (Sizes{125, 18, 100}));
  const std::vector<Shape> forty(40, Shape{});
  EXPECT_EQ(packs(4, 1, forty), Sizes(40, 1));
  EXPECT_EQ(packs(4, 2, forty), Sizes(20, 2));
  EXPECT_EQ(packs(4, 10, forty), Sizes(4, 10));
  EXPECT_EQ(packs(4, 16, forty), (Sizes{16, 16, 8}));
  AllReduceCrossDeviceOps both("hierarchical_copy", 2, 256, 10);
  EXPECT_EQ(packs_of(both, devices, four), (Sizes{13, 13}));
}

void check_packs_by_bytes(const std::vector<std::string>& devices) {
  const std::vector<Shape> shapes = vectors_of({32, 8, 200, 1});
  CommunicationOptions options;
  options.bytes_per_pack = 200;
  HierarchicalCopyAllReduce unpacked(0);
  EXPECT_EQ(packs_of(unpacked, devices, shapes, options), (Sizes{240, 1}));
  options.bytes_per_pack = 1;
  EXPECT_EQ(packs_of(unpacked, devices, shapes, options), (Sizes{32, 8, 200, 1}));
  EXPECT_EQ(packs_of(unpacked, devices, shapes), (Sizes{32, 8, 200, 1}));
  HierarchicalCopyAllReduce packed(1);
  EXPECT_EQ(packs_of(packed, devices, shapes, options), Sizes{241});
}

void check_groups_under_ring(const std::vector<std::string>& devices) {
  const std::vector<PerReplica> values =
      numbered({Shape{8}, Shape{3, 3}, Shape{12}, Shape{5, 5, 5}, Shape{3}, Shape{4}}, devices);
  AllReduceCrossDeviceOps plain("xring", 0);
  AllReduceCrossDeviceOps grouped("xring", 0, 40, 10);
  expect_sums(plain, values);
  expect_sums(grouped, values);
}

}  // namespace onesum::testing
