// Rule 4.7: duplicate rows of IndexedSlices, merged; bit by bit as plain code adds them.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "api/add_rows.h"
#include "api/engines.h"
#include "api/row_groups.h"
#include "plan/plan.h"
#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::cpus;
using testing::expect_error;
using testing::expect_invalid;
using testing::Fill;
using testing::slices;

CommunicationOptions merging() {
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  return options;
}

// --- the reference -----------------------------------------------------------------------------------

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class T>
struct Wide {
  using Type = std::conditional_t<kIsHalf<T>, float, T>;
};
template <class T>
  requires std::is_integral_v<T>
struct Wide<T> {
  using Type = std::conditional_t<std::is_signed_v<T>, Int128, UInt128>;
};

template <class Wide, class T>
Wide widened(T value) {
  if constexpr (kIsHalf<T>) {
    return value.to_float();
  } else {
    return static_cast<Wide>(value);
  }
}

// The tree splits n at the largest power of two below n; who is absent is left out.
template <class T>
std::optional<T> tree(std::span<const std::optional<T>> replicas) {
  if (replicas.size() == 1) return replicas[0];
  std::size_t left = 1;
  while (2 * left < replicas.size()) left *= 2;
  const std::optional<T> a = tree(replicas.first(left));
  const std::optional<T> b = tree(replicas.subspan(left));
  if (a && b) return *a + *b;
  return a ? a : b;
}

template <class T, class Out, class Sum>
Out finished(Sum sum, std::size_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    if (std::is_integral_v<Out>) return static_cast<Out>(sum);  // wraps
    return static_cast<Out>(sum) / static_cast<Out>(divisor);
  } else if constexpr (kIsHalf<T>) {
    return Out::from_float(sum / static_cast<float>(divisor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return sum / static_cast<T>(divisor);
  } else {
    using Part = typename T::value_type;
    return {sum.real() / static_cast<Part>(divisor), sum.imag() / static_cast<Part>(divisor)};
  }
}

struct Expected {
  std::vector<std::int64_t> rows;
  std::vector<std::byte> values;
};

std::int64_t index_at(const Tensor& indices, std::size_t i) {
  return indices.dtype() == DType::kInt64 ? indices.data<std::int64_t>()[i] : indices.data<std::int32_t>()[i];
}

template <class T, class Out>
Expected expected_as(const PerReplica& value, std::size_t divisor) {
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
  Expected expected;
  for (const auto& [row, columns] : rows) {
    expected.rows.push_back(row);
    for (const std::vector<std::optional<Sum>>& replicas : columns) {
      const Out out = finished<T, Out>(*tree<Sum>(replicas), divisor);
      const auto* bytes = reinterpret_cast<const std::byte*>(&out);
      expected.values.insert(expected.values.end(), bytes, bytes + sizeof(Out));
    }
  }
  return expected;
}

template <class T, class Mean = T>
Expected expected_of(ReduceOp op, const PerReplica& value) {
  if (op == ReduceOp::kSum) return expected_as<T, T>(value, 1);
  return expected_as<T, Mean>(value, value.size());
}

Expected expected(ReduceOp op, const PerReplica& value) {
  switch (value.slices(0).values.dtype()) {
    case DType::kUInt8:
      return expected_of<std::uint8_t, float>(op, value);
    case DType::kInt8:
      return expected_of<std::int8_t, float>(op, value);
    case DType::kUInt16:
      return expected_of<std::uint16_t, float>(op, value);
    case DType::kInt16:
      return expected_of<std::int16_t, float>(op, value);
    case DType::kUInt32:
      return expected_of<std::uint32_t, double>(op, value);
    case DType::kInt32:
      return expected_of<std::int32_t, double>(op, value);
    case DType::kUInt64:
      return expected_of<std::uint64_t, double>(op, value);
    case DType::kInt64:
      return expected_of<std::int64_t, double>(op, value);
    case DType::kFloat16:
      return expected_of<Float16>(op, value);
    case DType::kBFloat16:
      return expected_of<BFloat16>(op, value);
    case DType::kFloat32:
      return expected_of<float>(op, value);
    case DType::kFloat64:
      return expected_of<double>(op, value);
    case DType::kComplex64:
      return expected_of<std::complex<float>>(op, value);
    case DType::kComplex128:
      return expected_of<std::complex<double>>(op, value);
    case DType::kBool:
      break;
  }
  return {};
}

// --- values ------------------------------------------------------------------------------------------

struct Form {
  DType dtype = DType::kFloat32;
  std::size_t replicas = 1;
  std::size_t most_rows = 1;      // of a replica
  std::int64_t indices = 1;       // different ones
  std::vector<std::int64_t> row;  // shape of one
};

PerReplica random_slices(const Form& form, std::uint64_t seed, Fill how) {
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
    replicas.emplace_back(
        IndexedSlices{testing::random_tensor(form.dtype, Shape(std::span<const std::int64_t>(extents)),
                                             device, random(), how),
                      std::move(indices), dense});
  }
  return PerReplica(std::move(replicas));
}

DType index_dtype(const PerReplica& value) {
  for (std::size_t r = 0; r < value.size(); ++r) {
    if (value.slices(r).indices.dtype() == DType::kInt64) return DType::kInt64;
  }
  return DType::kInt32;
}

std::optional<Shape> dense_shape(const PerReplica& value) {
  for (std::size_t r = 0; r < value.size(); ++r) {
    if (value.slices(r).dense_shape) return value.slices(r).dense_shape;
  }
  return {};
}

Shape merged_shape(const PerReplica& value, const Expected& expected) {
  const auto one = value.slices(0).values.shape().extents();
  std::vector<std::int64_t> extents(one.begin(), one.end());
  extents[0] = static_cast<std::int64_t>(expected.rows.size());
  return Shape(std::span<const std::int64_t>(extents));
}

void expect_merged(const DistributedValues& found, ReduceOp op, const PerReplica& value,
                   const Expected& expected, const std::string& what) {
  for (std::size_t d = 0; d < found.size(); ++d) {
    const IndexedSlices& result = found.slices(d);
    ASSERT_EQ(result.values.dtype(), result_dtype(op, value.slices(0).values.dtype())) << what;
    ASSERT_EQ(result.indices.dtype(), index_dtype(value)) << what;
    ASSERT_EQ(result.values.shape(), merged_shape(value, expected)) << what;
    ASSERT_EQ(result.indices.shape(), Shape{static_cast<std::int64_t>(expected.rows.size())}) << what;
    for (std::size_t k = 0; k < expected.rows.size(); ++k) {
      ASSERT_EQ(index_at(result.indices, k), expected.rows[k]) << what;
    }
    ASSERT_TRUE(testing::same_bits(result.values, expected.values)) << what << ", destination " << d;
  }
}

// Memory of the caller's, as large as what comes.
PerReplica blank_results(ReduceOp op, const PerReplica& value, const Expected& expected,
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

// Every type and number of replicas, with few and many rows.
std::vector<PerReplica> all_kinds() {
  std::vector<PerReplica> values;
  std::uint64_t seed = 0;
  for (const DType dtype : testing::kSummable) {
    for (const std::size_t n : {1U, 2U, 3U, 5U, 6U, 7U, 16U}) {
      for (const Fill how : {Fill::kPlain, Fill::kWild}) {
        values.push_back(random_slices({dtype, n, 12, 5, {3}}, ++seed, how));              // many of each
        values.push_back(random_slices({dtype, n, 9, 40, {}}, ++seed, how));               // some; scalars
        values.push_back(random_slices({dtype, n, 3, 1000000000, {2, 17}}, ++seed, how));  // hardly any
      }
      values.push_back(
          random_slices({dtype, n, 4, 3, {0, 2}}, ++seed, Fill::kPlain));            // rows without elements
      values.push_back(random_slices({dtype, n, 0, 3, {2}}, ++seed, Fill::kPlain));  // no rows
    }
  }
  values.push_back(
      random_slices({DType::kFloat32, 3, 3, 2, {90001}}, ++seed, Fill::kPlain));  // rows in pieces
  values.push_back(random_slices({DType::kInt8, 3, 20000, 7000, {5}}, ++seed, Fill::kPlain));
  values.push_back(random_slices({DType::kFloat16, 6, 300, 70000, {40}}, ++seed, Fill::kPlain));
  return values;
}

TEST(MergeDuplicates, HasTheBitsOfPlainCode) {
  const std::vector<PerReplica> values = all_kinds();
  const PerReplica dense = testing::random_value(DType::kFloat32, {33}, cpus(3), 1);
  ReductionToOneDevice ops;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    std::vector<ValueDestination> pairs;
    std::vector<PerReplica> inputs;
    std::vector<PerReplica> results;
    std::vector<Expected> all;
    for (const PerReplica& value : values) {
      all.push_back(expected(op, value));
      pairs.push_back({value, value});
      inputs.push_back(value);
      results.push_back(blank_results(op, value, all.back(), value.devices()));
    }
    pairs.push_back({dense, "CPU:1"});
    inputs.push_back(dense);
    results.push_back(testing::blank_results(op, dense, {"CPU:1"}));
    const std::vector<std::byte> sum = testing::bytes_of(ops.reduce(op, dense, "CPU:1"));

    const auto check = [&](const auto& found, const std::string& way) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string what = way + ", value " + std::to_string(i) + " of " +
                                 std::string(to_string(values[i].slices(0).values.dtype())) + ", " +
                                 std::to_string(values[i].size()) + " replicas";
        expect_merged(found[i], op, values[i], all[i], what);
      }
      EXPECT_EQ(testing::bytes_of(found[values.size()].tensor()), sum) << way;
    };
    const std::vector<Mirrored> returned = ops.batch_reduce(op, pairs, merging());
    check(returned, "batch_reduce");
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(returned[i].devices().size(), values[i].size());
      for (std::size_t d = 0; d < returned[i].size(); ++d) {
        ASSERT_EQ(returned[i].slices(d).dense_shape, dense_shape(values[i]));
        ASSERT_EQ(returned[i].slices(d).values.device().canonical(), values[i].devices()[d].canonical());
      }
    }
    check(ops.batch_reduce_async(op, pairs, merging()).results(), "batch_reduce_async");
    ops.batch_reduce_into(op, inputs, results, merging());
    check(results, "batch_reduce_into");
    for (std::size_t i = 0; i < values.size(); i += 13) {
      expect_merged(ops.reduce(op, values[i], "CPU:9", merging()), op, values[i], all[i], "reduce");
    }
  }
}

// 4.7, 9.9
TEST(MergeDuplicates, EachRowOnceAscending) {
  ReductionToOneDevice ops;
  const PerReplica value(
      {slices({{5, 6}}, {3}, Shape{5, 2}, "CPU:0"), slices({{1, 2}, {3, 4}}, {3, 1}, Shape{5, 2}, "CPU:1")});
  const Mirrored sum = ops.reduce(ReduceOp::kSum, value, "CPU:0", merging());
  EXPECT_EQ(contents<float>(sum.slices().values), (std::vector<float>{3, 4, 6, 8}));
  EXPECT_EQ(contents<std::int64_t>(sum.slices().indices), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(sum.slices().dense_shape, (Shape{5, 2}));
  // By the number of replicas, not of those that have the row.
  const Mirrored mean = ops.reduce(ReduceOp::kMean, value, "CPU:0", merging());
  EXPECT_EQ(contents<float>(mean.slices().values), (std::vector<float>{1.5F, 2, 3, 4}));

  const PerReplica golden(
      {slices({{1, 2}}, {1}, Shape{5, 2}, "CPU:0"), slices({{3, 4}, {5, 6}}, {1, 3}, Shape{5, 2}, "CPU:1")});
  const auto merged_values = [&](ReduceOp op) {
    return contents<float>(ops.reduce(op, golden, golden, merging()).slices(1).values);
  };
  EXPECT_EQ(merged_values(ReduceOp::kSum), (std::vector<float>{4, 6, 5, 6}));
  EXPECT_EQ(merged_values(ReduceOp::kMean), (std::vector<float>{2, 3, 2.5F, 3}));
}

// Rows of one element at index 0, of each replica.
float merged(const std::vector<std::vector<float>>& replicas, ReduceOp op = ReduceOp::kSum) {
  std::vector<Value> components;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    std::vector<std::vector<float>> rows;
    for (const float element : replicas[r]) rows.push_back({element});
    components.emplace_back(Value(IndexedSlices{
        Tensor::from<float>(std::span<const float>(replicas[r]), {static_cast<std::int64_t>(rows.size()), 1},
                            cpus(r + 1).back()),
        Tensor::from<std::int32_t>(std::vector<std::int32_t>(rows.size(), 0),
                                   {static_cast<std::int64_t>(rows.size())}, cpus(r + 1).back()),
        std::nullopt}));
  }
  ReductionToOneDevice ops;
  return contents<float>(
             ops.reduce(op, PerReplica(std::move(components)), "CPU:0", merging()).slices().values)
      .at(0);
}

TEST(MergeDuplicates, AddsInItsOrder) {
  EXPECT_EQ(merged({{1e8F, 1, -1e8F}}), 0);  // by position
  EXPECT_EQ(merged({{1e8F, -1e8F, 1}}), 1);
  EXPECT_EQ(merged({{1e8F}, {1}, {-1e8F}, {1}}), 0);  // the tree over replicas
  EXPECT_EQ(merged({{1e8F}, {}, {-1e8F}, {1}}), 0);   // as it is with one absent: 0 + (2 + 3)
  EXPECT_EQ(merged({{1e8F}, {-1e8F}, {}, {1}}), 1);
  EXPECT_EQ(merged({{1, 1e8F}, {-1e8F}}), 0);  // inside each replica first
  EXPECT_EQ(merged({{1}, {1e8F, -1e8F}}), 1);
}

TEST(MergeDuplicates, NothingIsAddedForWhoIsAbsent) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    EXPECT_TRUE(std::signbit(merged({{-0.F}, {}, {}}, op)));
    EXPECT_TRUE(std::signbit(merged({{}, {-0.F, -0.F}, {}, {-0.F}, {}}, op)));
    EXPECT_FALSE(std::signbit(merged({{-0.F}, {0.F}}, op)));
    EXPECT_TRUE(std::isnan(merged({{1}, {}, {std::numeric_limits<float>::quiet_NaN(), 2}}, op)));
  }
}

// More occurrences than any number of replicas.
TEST(MergeDuplicates, TakesARowAMillionTimes) {
  constexpr std::int64_t kRows = 400000;
  std::vector<Value> replicas;
  for (std::size_t r = 0; r < 3; ++r) {
    const std::string device = cpus(r + 1).back();
    Tensor indices = Tensor::empty(DType::kInt32, {kRows}, device);
    std::ranges::fill(indices.data<std::int32_t>(), 7);
    replicas.emplace_back(
        IndexedSlices{testing::random_tensor(DType::kFloat16, {kRows, 3}, device, r), indices, std::nullopt});
  }
  const PerReplica value(std::move(replicas));
  ReductionToOneDevice ops;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    expect_merged(ops.reduce(op, value, "CPU:0", merging()), op, value, expected(op, value), "a million");
  }
}

TEST(MergeDuplicates, WritesManyDestinations) {
  const PerReplica value = random_slices({DType::kBFloat16, 5, 20, 9, {6}}, 3, Fill::kPlain);
  std::vector<Tensor> marks;
  for (const std::string& device : cpus(40)) marks.push_back(testing::scalar<float>(0, device));
  ReductionToOneDevice ops;
  const Mirrored result = ops.reduce(ReduceOp::kMean, value, PerReplica(std::move(marks)), merging());
  ASSERT_EQ(result.size(), 40);
  expect_merged(result, ReduceOp::kMean, value, expected(ReduceOp::kMean, value), "40 destinations");
}

// Whatever order the merges stand for, written out.
std::string expression(std::span<const std::string> names, std::span<const std::uint8_t> merges) {
  std::vector<std::string> stack;
  for (std::size_t i = 0; i < names.size(); ++i) {
    stack.push_back(names[i]);
    for (int m = 0; m < merges[i]; ++m) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  return stack.size() == 1 ? stack.front() : "not one sum";
}

struct Term {
  std::string text;
  Term operator+(const Term& right) const { return {"(" + text + "+" + right.text + ")"}; }
};

TEST(RowGroups, OrderIsTheCanonicalTreeWithoutWhoIsAbsent) {
  std::mt19937_64 random(5);
  for (std::size_t n = 1; n <= 70; ++n) {
    for (int round = 0; round < 30; ++round) {
      // Each replica has row 4 so many times, and row 1 once.
      std::vector<std::vector<std::size_t>> indices(n);
      std::vector<std::string> names;
      std::vector<std::optional<Term>> sums(n);
      for (std::size_t r = 0; r < n; ++r) {
        const std::size_t count = round == 0 ? 1 : random() % 3;
        for (std::size_t k = 0; k < count; ++k) {
          names.push_back(std::to_string(r) + "." + std::to_string(k));
          sums[r] = k == 0 ? Term{names.back()} : *sums[r] + Term{names.back()};
        }
        indices[r].assign(count, 4);
        indices[r].push_back(1);
      }
      const api::RowGroups groups = api::group_rows(indices);
      const std::size_t all = names.size();
      ASSERT_EQ(groups.rows, all == 0 ? std::vector<std::size_t>{1} : std::vector<std::size_t>({1, 4}));
      ASSERT_EQ(groups.first.back(), n + all);
      const std::span<const std::uint8_t> merges(groups.merges);
      ASSERT_TRUE(std::ranges::equal(merges.first(n), plan::canonical_merges(n)));
      if (all == 0) continue;
      ASSERT_EQ(expression(names, merges.subspan(n)), tree<Term>(sums)->text);
    }
  }
}

TEST(RowGroups, SortsAnyIndex) {
  std::mt19937_64 random(6);
  std::vector<std::vector<std::size_t>> indices(4);
  std::map<std::size_t, std::vector<std::size_t>> positions;
  std::size_t position = 0;
  for (std::vector<std::size_t>& replica : indices) {
    for (int k = 0; k < 1000; ++k) {
      replica.push_back(random() >> (1 + random() % 63));
      positions[replica.back()].push_back(position++);
    }
  }
  const api::RowGroups groups = api::group_rows(indices);
  ASSERT_EQ(groups.rows.size(), positions.size());
  std::size_t row = 0;
  for (const auto& [index, expected] : positions) {
    ASSERT_EQ(groups.rows[row], index);
    const auto begin = groups.positions.begin() + static_cast<std::ptrdiff_t>(groups.first[row]);
    ASSERT_EQ(std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(expected.size())),
              expected);
    ++row;
  }
}

TEST(AddRows, StopsAtTheDeadline) {
  const std::vector<std::vector<std::size_t>> indices{{0, 0}};
  const api::RowGroups groups = api::group_rows(indices);
  const std::vector<float> values{1, 2};
  float sum = 0;
  std::byte* const to = reinterpret_cast<std::byte*>(&sum);
  const api::RowSums sums{.groups = groups,
                          .form = {},
                          .row_elements = 1,
                          .values = reinterpret_cast<const std::byte*>(values.data()),
                          .destinations = {&to, 1}};
  expect_error([&] { api::add_rows(sums, api::host_engine(), now()); }, ErrorCode::kDeadlineExceeded,
               {"timeout", "merged"});
  EXPECT_EQ(sum, 0);
  api::add_rows(sums, api::host_engine(), now() + std::chrono::hours(1));
  EXPECT_EQ(sum, 3);
}

// --- into the caller's memory ------------------------------------------------------------------------

struct Into {
  PerReplica value{{slices({{1}, {2}, {3}}, {4, 0, 4}, Shape{5, 1}, "CPU:0"),
                    slices({{10}, {20}, {30}}, {0, 1, 0}, Shape{5, 1}, "CPU:1")}};
  ReductionToOneDevice ops;

  static IndexedSlices blank(std::int64_t rows, const char* device) {
    return {
        Tensor::empty(DType::kFloat32, {rows, 1}, device), Tensor::empty(DType::kInt64, {rows}, device), {}};
  }
  void refuse(const PerReplica& result, std::initializer_list<std::string_view> parts, bool by_prepare = true,
              std::source_location where = std::source_location::current()) {
    const std::vector<PerReplica> values{value};
    std::vector<PerReplica> results{result};
    expect_invalid([&] { ops.batch_reduce_into(ReduceOp::kSum, values, results, merging()); }, parts, where);
    if (by_prepare) {
      expect_invalid([&] { ops.prepare(ReduceOp::kSum, values, results, merging()); }, parts, where);
    }
  }
};

// 5.7, 8.14
TEST(MergeDuplicatesInto, RefusesResultsThatDoNotFit) {
  Into into;
  into.refuse(into.blank(2, "CPU:0"), {"pair 0: result on", "CPU:0", "2 row(s)", "expected 3", "6 row(s)"},
              false);
  into.refuse(into.blank(6, "CPU:1"), {"CPU:1", "6 row(s)", "expected 3"}, false);
  into.refuse(Tensor::empty(DType::kFloat32, {3, 1}, "CPU:0"), {"pair 0: result on", "dense", "sparse"});
  IndexedSlices result = into.blank(3, "CPU:0");
  result.values = Tensor::empty(DType::kFloat64, {3, 1}, "CPU:0");
  into.refuse(result, {"(values) is of float64", "expected float32"});
  result = into.blank(3, "CPU:0");
  result.indices = Tensor::empty(DType::kInt32, {3}, "CPU:0");
  into.refuse(result, {"(indices) is of int32", "expected int64"});
  result.values = Tensor::empty(DType::kFloat32, {3, 2}, "CPU:0");
  result.indices = Tensor::empty(DType::kInt64, {3}, "CPU:0");
  into.refuse(result, {"[3,2]", "expected [3,1]"});
  into.refuse(PerReplica({into.blank(3, "CPU:0"), into.blank(3, "CPU:0")}), {"twice"});
  result = into.blank(3, "CPU:0");
  into.refuse(PerReplica({result, IndexedSlices{Tensor::borrow(result.values.data<float>().data(),
                                                               DType::kFloat32, {3, 1}, "CPU:1"),
                                                Tensor::empty(DType::kInt64, {3}, "CPU:1"),
                                                {}}}),
              {"pair 0: result on", "share memory"});
  // The values are a replica's, the indices are not.
  result.values = into.value.slices(0).values;
  into.refuse(result, {"pair 0: replica on", "pair 0: result on", "share memory"});
  EXPECT_EQ(contents<float>(into.value.slices(0).values), (std::vector<float>{1, 2, 3}));
}

// A refused call has changed nothing: also not the dense pairs of its batch.
TEST(MergeDuplicatesInto, IsRefusedBeforeAnyWork) {
  Into into;
  const std::vector<PerReplica> values{testing::vectors<float>({{1}, {2}}), into.value};
  std::vector<PerReplica> results{testing::vectors<float>({{-1}}), into.blank(4, "CPU:0")};
  expect_invalid([&] { into.ops.batch_reduce_into(ReduceOp::kSum, values, results, merging()); }, {"pair 1"});
  EXPECT_EQ(contents<float>(results[0].tensor()), std::vector<float>{-1});
}

TEST(MergeDuplicatesInto, ReplacesAReplica) {
  Into into;
  const std::vector<PerReplica> values{into.value};
  // Replica 1 is replaced, and as many rows as it has are left.
  std::vector<PerReplica> results{PerReplica({into.blank(3, "CPU:0"), into.value.slices(1)})};
  into.ops.batch_reduce_into(ReduceOp::kSum, values, results, merging());
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(contents<float>(results[0].slices(d).values), (std::vector<float>{42, 20, 4}));
    EXPECT_EQ(contents<std::int64_t>(results[0].slices(d).indices), (std::vector<std::int64_t>{0, 1, 4}));
  }
}

// 5.9
TEST(MergeDuplicatesInto, PreparedLooksAtTheIndicesInEveryRun) {
  Into into;
  const std::vector<PerReplica> values{into.value};
  std::vector<PerReplica> results{into.blank(3, "CPU:0")};
  PreparedReduce prepared = into.ops.prepare(ReduceOp::kSum, values, results, merging());
  prepared.run();
  EXPECT_EQ(contents<float>(results[0].slices().values), (std::vector<float>{42, 20, 4}));
  Tensor indices = into.value.slices(0).indices;
  std::ranges::fill(indices.data<std::int64_t>(), 3);
  prepared.run();
  EXPECT_EQ(contents<float>(results[0].slices().values), (std::vector<float>{40, 20, 6}));
  EXPECT_EQ(contents<std::int64_t>(results[0].slices().indices), (std::vector<std::int64_t>{0, 1, 3}));
  std::ranges::fill(indices.data<std::int64_t>(), 1);
  expect_invalid([&] { prepared.run(); }, {"pair 0", "3 row(s)", "expected 2"});
  expect_invalid([&] { prepared.start().wait(); }, {"pair 0", "3 row(s)", "expected 2"});
  EXPECT_EQ(contents<float>(results[0].slices().values), (std::vector<float>{40, 20, 6}));
}

// --- refusals and words ------------------------------------------------------------------------------

// 8.11
TEST(MergeDuplicates, RefusesIndicesThatNameNoRow) {
  ReductionToOneDevice ops;
  const auto refuse = [&](const PerReplica& value, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { ops.reduce(ReduceOp::kSum, value, "CPU:0", merging()); }, parts);
  };
  refuse(PerReplica({slices({{1}}, {0}, {}, "CPU:0"), slices({{1}, {2}}, {4, 5}, Shape{5, 1}, "CPU:1")}),
         {"value: replica 1", "row 1", "index 5", "less than 5"});
  // The dense shape is the value's, whichever replica names it.
  refuse(PerReplica({slices({{1}}, {9}, {}, "CPU:0"), slices({}, {}, Shape{5, 1}, "CPU:1")}),
         {"replica 0", "index 9", "less than 5"});
  refuse(PerReplica(slices({{1}}, {-1}, {}, "CPU:0")), {"replica 0", "row 0", "index -1", "0 or more"});
  refuse(PerReplica({slices({{1}}, {0}, {}, "CPU:0"), slices({{1, 2}}, {0}, {}, "CPU:1")}),
         {"[1,2]", "[1,1]"});
  expect_invalid(
      [&] { ops.reduce(ReduceOp::kSum, slices({{1}}, {0}, {}, "CPU:0"), "/job:other/cpu:0", merging()); },
      {"value: destination", "/job:other"});
}

// 5.10
TEST(MergeDuplicates, IsToldInWords) {
  Into into;
  const std::vector<ValueDestination> pairs{{into.value, into.value}};
  const std::string words = into.ops.explain(ReduceOp::kMean, pairs, merging());
  for (const char* part : {"rows of one index are added in float32", "canonical order", "divided by 2",
                           "2 destination(s)", "each index is kept once"}) {
    EXPECT_NE(words.find(part), std::string::npos) << part << " is not in: " << words;
  }
  EXPECT_EQ(into.ops.explain(ReduceOp::kMean, pairs).find("rows of one index"), std::string::npos);
  into.ops.plan(ReduceOp::kMean, pairs, merging()).verify();
  into.ops.reduce(ReduceOp::kMean, into.value, "CPU:0", merging());
  EXPECT_EQ(into.ops.last_call().number, 1);
}

// 4.6, 4.8: a value that is dense in part has a dense sum; the function does not see sparse values.
TEST(MergeDuplicates, LeavesOthersAlone) {
  int calls = 0;
  ReductionToOneDevice ops({}, [&](std::span<const Tensor> tensors) {
    ++calls;
    return tensors.front();
  });
  const PerReplica mixed(std::vector<Value>{Tensor::from<float>({1, 1}, {2, 1}, "CPU:0"),
                                            slices({{2}, {4}}, {1, 1}, {}, "CPU:1")});
  const PerReplica sparse({slices({{1}, {2}}, {1, 1}, {}, "CPU:0"), slices({{3}}, {0}, {}, "CPU:1")});
  const std::vector<ValueDestination> pairs{{mixed, "CPU:0"}, {sparse, "CPU:1"}};
  const std::vector<Mirrored> results = ops.batch_reduce(ReduceOp::kSum, pairs, merging());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(contents<float>(results[0].tensor()), (std::vector<float>{1, 1}));
  EXPECT_EQ(contents<float>(results[1].slices().values), (std::vector<float>{3, 3}));
  ReductionToOneDevice plain;
  EXPECT_EQ(contents<float>(plain.batch_reduce(ReduceOp::kSum, pairs, merging())[0].tensor()),
            (std::vector<float>{1, 7}));
}

}  // namespace
}  // namespace onesum
