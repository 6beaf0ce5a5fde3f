#include "conformance/dense_checks.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/variable.h>

#include "conformance/ways.h"
#include "support/bits.h"
#include "support/tensors.h"
#include "support/with_type.h"

namespace onesum::testing {
namespace {

constexpr ReduceOp kBoth[] = {ReduceOp::kSum, ReduceOp::kMean};

std::vector<DType> all_types() {
  std::vector<DType> all(std::begin(kSummable), std::end(kSummable));
  all.push_back(DType::kBool);
  return all;
}

// Small whole numbers that follow from the replica and the element.
int number_at(std::size_t replica, std::size_t element) {
  return static_cast<int>((replica * 3 + element) % 5);
}

template <class T>
T as(double number) {
  if constexpr (is_half<T>) {
    return T::from_float(static_cast<float>(number));
  } else if constexpr (is_complex<T>) {
    return T(static_cast<typename T::value_type>(number), 0);
  } else {
    return static_cast<T>(number);
  }
}

template <class T>
Tensor tensor_of(const std::vector<double>& numbers, const Device& device) {
  std::vector<T> values;
  for (const double number : numbers) values.push_back(as<T>(number));
  return vector_of<T>(values, device);
}

Tensor tensor_of(DType dtype, const std::vector<double>& numbers, const Device& device) {
  return with_type(dtype, [&](auto zero) { return tensor_of<decltype(zero)>(numbers, device); });
}

struct Form {
  DType dtype;
  std::size_t elements;
};

PerReplica whole_numbers(const Stage& stage, const Form& form) {
  return stage.value([&](std::size_t replica, const Device& device) {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < form.elements; ++i) numbers.push_back(number_at(replica, i));
    return tensor_of(form.dtype, numbers, device);
  });
}

std::vector<std::byte> sum_of_whole_numbers(const Stage& stage, const Form& form) {
  std::vector<double> sums(form.elements, 0);
  for (std::size_t r = 0; r < stage.replicas(); ++r) {
    for (std::size_t i = 0; i < form.elements; ++i) sums[i] += number_at(r, i);
  }
  return bytes_of(tensor_of(form.dtype, sums, "CPU:0"));
}

// Element by element: the concatenation of the replicas' bytes, in which each has so many of `outer` runs.
std::vector<std::byte> concatenated(const std::vector<std::vector<std::byte>>& replicas, std::size_t outer) {
  std::vector<std::byte> all;
  for (std::size_t run = 0; run < outer; ++run) {
    for (const std::vector<std::byte>& bytes : replicas) {
      const std::size_t each = bytes.size() / outer;
      all.insert(all.end(), bytes.begin() + static_cast<std::ptrdiff_t>(run * each),
                 bytes.begin() + static_cast<std::ptrdiff_t>((run + 1) * each));
    }
  }
  return all;
}

void check_gather_along(CrossDeviceOps& ops, const Stage& stage, DType dtype, std::size_t axis) {
  // [2, 3, 2], but 1 to 3 along the axis.
  const auto shape_of = [&](std::size_t replica) {
    std::vector<std::int64_t> extents{2, 3, 2};
    extents[axis] = static_cast<std::int64_t>(replica % 3 + 1);
    return Shape(std::span<const std::int64_t>(extents));
  };
  const auto tensor_at = [&](std::size_t replica, const Device& device) {
    return random_tensor(dtype, shape_of(replica), device, replica + 7, Fill::kWild);
  };
  std::vector<std::vector<std::byte>> replicas;
  std::int64_t extent = 0;
  for (std::size_t r = 0; r < stage.replicas(); ++r) {
    replicas.push_back(bytes_of(tensor_at(r, "CPU:0")));
    extent += shape_of(r)[axis];
  }
  const std::size_t outer = axis == 0 ? 1 : axis == 1 ? 2 : 6;
  const PerReplica value = stage.value(tensor_at);
  for (const Destination& to : {Destination(value), Destination(stage.host)}) {
    const Mirrored result = ops.gather(value, to, static_cast<int>(axis));
    stage.expect_on(result, to);
    for (std::size_t d = 0; d < result.size(); ++d) {
      EXPECT_EQ(result.tensor(d).dtype(), dtype);
      EXPECT_EQ(result.tensor(d).shape()[axis], extent);
      EXPECT_EQ(bytes_of(result.tensor(d)), concatenated(replicas, outer))
          << to_string(dtype) << " axis " << axis;
    }
  }
}

}  // namespace

void check_known_numbers(CrossDeviceOps& ops, const Stage& stage) {
  const auto numbers_of = [](std::size_t replica) {
    const auto first = static_cast<float>(2 * (replica % 4) + 1);
    return std::vector<float>{first, first + 1};
  };
  const PerReplica scalars = stage.value([](std::size_t replica, const Device& device) {
    return scalar(static_cast<float>(replica % 4 + 1), device);
  });
  const PerReplica vectors = stage.value([&](std::size_t replica, const Device& device) {
    return vector_of<float>(numbers_of(replica), device);
  });
  float sum = 0;
  std::vector<float> sums{0, 0};
  for (std::size_t r = 0; r < stage.replicas(); ++r) {
    sum += static_cast<float>(r % 4 + 1);
    for (std::size_t i = 0; i < 2; ++i) sums[i] += numbers_of(r)[i];
  }
  for (const ReduceOp op : kBoth) {
    const float divisor = op == ReduceOp::kSum ? 1.0F : static_cast<float>(stage.replicas());
    const std::vector<ValueDestination> pairs{{vectors, vectors}, {scalars, scalars}};
    const std::vector<Mirrored> results = ops.batch_reduce(op, pairs);
    const Mirrored alone = ops.reduce(op, scalars, stage.host);
    EXPECT_EQ(contents<float>(alone.tensor()), std::vector<float>{sum / divisor});
    for (std::size_t d = 0; d < stage.devices.size(); ++d) {
      EXPECT_EQ(contents<float>(results[0].tensor(d)),
                (std::vector<float>{sums[0] / divisor, sums[1] / divisor}));
      EXPECT_EQ(contents<float>(results[1].tensor(d)), std::vector<float>{sum / divisor});
    }
  }
}

void check_ways(CrossDeviceOps& ops, const Stage& stage) {
  const std::vector<Form> forms{{DType::kFloat32, 1009}, {DType::kFloat16, 0},  {DType::kFloat16, 311},
                                {DType::kInt32, 1},      {DType::kFloat32, 1},  {DType::kComplex64, 17},
                                {DType::kUInt8, 7},      {DType::kFloat64, 13}, {DType::kFloat32, 0}};
  std::vector<PerReplica> values;
  std::vector<std::vector<std::byte>> expected;
  for (const Form& form : forms) {
    values.push_back(whole_numbers(stage, form));
    expected.push_back(sum_of_whole_numbers(stage, form));
  }
  for (const Way way : kAllWays) {
    const std::vector<PerReplica> results = reduced(ops, ReduceOp::kSum, values, way);
    ASSERT_EQ(results.size(), values.size());
    for (std::size_t v = 0; v < values.size(); ++v) {
      EXPECT_EQ(results[v].size(), stage.devices.size());
      EXPECT_TRUE(all_hold(results[v], expected[v])) << name_of(way) << ", value " << v;
    }
  }
}

void check_gather(CrossDeviceOps& ops, const Stage& stage) {
  for (std::size_t axis = 0; axis < 3; ++axis) check_gather_along(ops, stage, DType::kFloat32, axis);
  for (const DType dtype : all_types()) check_gather_along(ops, stage, dtype, 1);
}

void check_broadcast_of_types(CrossDeviceOps& ops, const Stage& stage) {
  const PerReplica everywhere =
      stage.value([](std::size_t, const Device& device) { return scalar(0.0F, device); });
  const int root = stage.workers - 1;
  const bool counts = stage.rank == root;
  for (const DType dtype : all_types()) {
    for (const std::int64_t elements : {0, 1, 1009}) {
      const Tensor right = random_tensor(dtype, {elements}, stage.devices.back(), 5, Fill::kWild);
      const Tensor wrong = random_tensor(dtype, {elements}, stage.devices.back(), 6, Fill::kWild);
      const Mirrored result = ops.broadcast(counts ? right : wrong, everywhere, root);
      stage.expect_on(result, everywhere);
      for (std::size_t d = 0; d < result.size(); ++d) {
        EXPECT_EQ(result.tensor(d).dtype(), dtype);
        EXPECT_EQ(bytes_of(result.tensor(d)), bytes_of(right)) << to_string(dtype);
      }
    }
  }
  const IndexedSlices rows = slices({{1, 2}, {3, 4}}, {7, 7}, Shape{9, 2}, stage.devices.front());
  const Mirrored result = ops.broadcast(rows, everywhere, root);
  for (std::size_t d = 0; d < result.size(); ++d) {
    EXPECT_EQ(contents<float>(result.slices(d).values), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(contents<std::int64_t>(result.slices(d).indices), (std::vector<std::int64_t>{7, 7}));
    EXPECT_EQ(result.slices(d).dense_shape, (Shape{9, 2}));
  }
}

void check_variables(CrossDeviceOps& ops, const Stage& stage) {
  const std::vector<Device> devices(stage.devices.rbegin(), stage.devices.rend());
  const MirroredVariable variable("v", scalar(1.0F, "CPU:0"), devices);
  const Variable single("w", scalar(3.0F, stage.host));
  for (const ReduceOp op : kBoth) {
    const float expected = op == ReduceOp::kSum ? static_cast<float>(stage.replicas()) : 1;
    const Mirrored all = ops.reduce(op, variable, variable);
    stage.expect_on(all, variable);
    EXPECT_EQ(all.size(), devices.size());
    const Mirrored batched = ops.batch_reduce(op, one_pair(variable, variable)).at(0);
    for (std::size_t d = 0; d < all.size(); ++d) {
      EXPECT_EQ(contents<float>(all.tensor(d)), std::vector<float>{expected});
      EXPECT_EQ(contents<float>(batched.tensor(d)), std::vector<float>{expected});
    }
    const Mirrored one = ops.reduce(op, variable, single);
    stage.expect_on(one, single);
    EXPECT_EQ(contents<float>(one.tensor()), std::vector<float>{expected});
  }
  for (const Tensor& component : variable.components())
    EXPECT_EQ(contents<float>(component), std::vector<float>{1});
  EXPECT_EQ(contents<float>(single.value()), std::vector<float>{3});
}

void check_nothing_aliases(CrossDeviceOps& ops, const Stage& stage) {
  const PerReplica value =
      stage.value([](std::size_t, const Device& device) { return scalar(2.0F, device); });
  const std::vector<ValueDestination> pairs{{value, value}, {value, value}};
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kMean, pairs);
  std::vector<const void*> memory;
  for (std::size_t d = 0; d < stage.devices.size(); ++d) {
    memory.push_back(value.tensor(d).memory());
    for (const Mirrored& result : results) memory.push_back(result.tensor(d).memory());
    EXPECT_EQ(contents<float>(value.tensor(d)), std::vector<float>{2});
  }
  std::ranges::sort(memory);
  EXPECT_EQ(std::ranges::adjacent_find(memory), memory.end());
}

void check_dense(CrossDeviceOps& ops, const Stage& stage) {
  SCOPED_TRACE(stage.name());
  check_known_numbers(ops, stage);
  check_ways(ops, stage);
  check_gather(ops, stage);
  check_broadcast_of_types(ops, stage);
  check_variables(ops, stage);
}

}  // namespace onesum::testing
