#include "conformance/merged_rows.h"

#include <map>
#include <random>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "support/tensors.h"
#include "support/with_type.h"

namespace onesum::testing {
namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <class T>
struct Wide {
  using Type = std::conditional_t<is_half<T>, float, T>;
};
template <class T>
  requires std::is_integral_v<T>
struct Wide<T> {
  using Type = std::conditional_t<std::is_signed_v<T>, Int128, UInt128>;
};

template <class Wide, class T>
Wide widened(T value) {
  if constexpr (is_half<T>) {
    return value.to_float();
  } else {
    return static_cast<Wide>(value);
  }
}

template <class T, class Out, class Sum>
Out finished(Sum sum, std::size_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    if (std::is_integral_v<Out>) return static_cast<Out>(sum);  // wraps
    return static_cast<Out>(sum) / static_cast<Out>(divisor);
  } else if constexpr (is_half<T>) {
    return Out::from_float(sum / static_cast<float>(divisor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return sum / static_cast<T>(divisor);
  } else {
    using Part = typename T::value_type;
    return {sum.real() / static_cast<Part>(divisor), sum.imag() / static_cast<Part>(divisor)};
  }
}

std::int64_t index_at(const Tensor& indices, std::size_t i) {
  return indices.dtype() == DType::kInt64 ? indices.data<std::int64_t>()[i] : indices.data<std::int32_t>()[i];
}

template <class T, class Out>
MergedRows merged_as(const PerReplica& value, std::size_t divisor) {
  using Sum = typename Wide<T>::Type;
  const Shape& shape = value.slices(0).values.shape();
  std::size_t width = 1;
  for (const std::int64_t extent : shape.extents().subspan(1)) width *= static_cast<std::size_t>(extent);
  // By row: of each replica, the sum of each column.
  std::map<std::int64_t, std::vector<std::vector<std::optional<Sum>>>> rows;
  for (std::size_t r = 0; r < value.size(); ++r) {
    const IndexedSlices& replica = value.slices(r);
    for (std::size_t k = 0; k < replica.indices.shape().elements(); ++k) {
      auto& columns = rows[index_at(replica.indices, k)];
      columns.resize(width, std::vector<std::optional<Sum>>(value.size()));
      for (std::size_t c = 0; c < width; ++c) {
        const Sum term = widened<Sum>(replica.values.data<T>()[k * width + c]);
        std::optional<Sum>& sum = columns[c][r];
        sum = sum ? *sum + term : term;
      }
    }
  }
  MergedRows expected;
  for (const auto& [row, columns] : rows) {
    expected.rows.push_back(row);
    for (const std::vector<std::optional<Sum>>& replicas : columns) {
      const Out out = finished<T, Out>(*sum_of_present<Sum>(replicas), divisor);
      const auto* bytes = reinterpret_cast<const std::byte*>(&out);
      expected.values.insert(expected.values.end(), bytes, bytes + sizeof(Out));
    }
  }
  return expected;
}

template <class T>
using MeanOf =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<(sizeof(T) < 4), float, double>, T>;

DType index_dtype(const PerReplica& value) {
  for (std::size_t r = 0; r < value.size(); ++r) {
    if (value.slices(r).indices.dtype() == DType::kInt64) return DType::kInt64;
  }
  return DType::kInt32;
}

Shape merged_shape(const PerReplica& value, const MergedRows& expected) {
  const auto one = value.slices(0).values.shape().extents();
  std::vector<std::int64_t> extents(one.begin(), one.end());
  extents[0] = static_cast<std::int64_t>(expected.rows.size());
  return Shape(std::span<const std::int64_t>(extents));
}

}  // namespace

CommunicationOptions merging() {
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  return options;
}

MergedRows merged_rows(ReduceOp op, const PerReplica& value) {
  return with_type(value.slices(0).values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return op == ReduceOp::kSum ? merged_as<T, T>(value, 1) : merged_as<T, MeanOf<T>>(value, value.size());
  });
}

PerReplica random_slices(const SlicesForm& form, std::uint64_t seed, Fill how) {
  std::mt19937_64 random(seed);
  std::vector<Value> replicas;
  for (std::size_t r = 0; r < form.replicas; ++r) {
    const auto rows = static_cast<std::int64_t>(random() % (form.most_rows + 1));
    std::vector<std::int64_t> extents{rows};
    extents.insert(extents.end(), form.row.begin(), form.row.end());
    const std::string device = cpus(r + 1).back();
    const bool wide = random() % 8 == 0;
    Tensor indices = Tensor::empty(wide ? DType::kInt64 : DType::kInt32, {rows}, device);
    for (std::size_t k = 0; k < static_cast<std::size_t>(rows); ++k) {
      const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(form.indices));
      if (wide) {
        indices.data<std::int64_t>()[k] = index;
      } else {
        indices.data<std::int32_t>()[k] = static_cast<std::int32_t>(index);
      }
    }
    extents[0] = form.indices;
    std::optional<Shape> dense;
    if (random() % 2 == 0) dense = Shape(std::span<const std::int64_t>(extents));
    extents[0] = rows;
    replicas.emplace_back(IndexedSlices{
        random_tensor(form.dtype, Shape(std::span<const std::int64_t>(extents)), device, random(), how),
        std::move(indices), dense});
  }
  return PerReplica(std::move(replicas));
}

std::optional<Shape> dense_shape(const PerReplica& value) {
  for (std::size_t r = 0; r < value.size(); ++r) {
    if (value.slices(r).dense_shape) return value.slices(r).dense_shape;
  }
  return {};
}

void expect_merged(const DistributedValues& found, ReduceOp op, const PerReplica& value,
                   const MergedRows& expected, const std::string& what) {
  for (std::size_t d = 0; d < found.size(); ++d) {
    const IndexedSlices& result = found.slices(d);
    ASSERT_EQ(result.values.dtype(), result_dtype(op, value.slices(0).values.dtype())) << what;
    ASSERT_EQ(result.indices.dtype(), index_dtype(value)) << what;
    ASSERT_EQ(result.values.shape(), merged_shape(value, expected)) << what;
    ASSERT_EQ(result.indices.shape(), Shape{static_cast<std::int64_t>(expected.rows.size())}) << what;
    const Tensor indices = on_host(result.indices);
    for (std::size_t k = 0; k < expected.rows.size(); ++k) {
      ASSERT_EQ(index_at(indices, k), expected.rows[k]) << what;
    }
    ASSERT_TRUE(same_bits(result.values, expected.values)) << what << ", destination " << d;
  }
}

PerReplica blank_results(ReduceOp op, const PerReplica& value, const MergedRows& expected,
                         const std::vector<Device>& devices) {
  std::vector<Value> results;
  for (const Device& device : devices) {
    results.emplace_back(IndexedSlices{
        Tensor::empty(result_dtype(op, value.slices(0).values.dtype()), merged_shape(value, expected),
                      device),
        Tensor::empty(index_dtype(value), {static_cast<std::int64_t>(expected.rows.size())}, device),
        std::nullopt});
  }
  return PerReplica(std::move(results));
}

}  // namespace onesum::testing
