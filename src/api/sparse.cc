#include "api/sparse.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <concepts>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <onesum/error.h>

#include "api/copies.h"
#include "api/engines.h"
#include "base/element.h"

namespace onesum::api {
namespace {

[[noreturn]] void refuse(std::string_view name, const std::string& problem) {
  throw Error(ErrorCode::kInvalidArgument, std::string(name) + ": " + problem);
}

// --- elements ----------------------------------------------------------------------------------------

template <class T>
struct Type {};

// Calls f(Type<Input>, Type<Accumulator>) for the pairs of types that densified_dtype can give.
template <class F>
void with_types(DType input, DType accumulator, const F& f) {
  const auto same_or = [&]<class Input, class Wide>(Type<Input> in, Type<Wide> wide) {
    if (accumulator == kDTypeOf<Wide>) return f(in, wide);
    if constexpr (!std::same_as<Input, Float16> && !std::same_as<Input, BFloat16>) {
      if (accumulator == input) return f(in, in);
    }
    throw Error(ErrorCode::kInternal, "sums of " + std::string(to_string(input)) + " are not formed in " +
                                          std::string(to_string(accumulator)));
  };
  switch (input) {
    case DType::kUInt8:
      return same_or(Type<std::uint8_t>(), Type<std::uint64_t>());
    case DType::kInt8:
      return same_or(Type<std::int8_t>(), Type<std::int64_t>());
    case DType::kUInt16:
      return same_or(Type<std::uint16_t>(), Type<std::uint64_t>());
    case DType::kInt16:
      return same_or(Type<std::int16_t>(), Type<std::int64_t>());
    case DType::kUInt32:
      return same_or(Type<std::uint32_t>(), Type<std::uint64_t>());
    case DType::kInt32:
      return same_or(Type<std::int32_t>(), Type<std::int64_t>());
    case DType::kUInt64:
      return same_or(Type<std::uint64_t>(), Type<std::uint64_t>());
    case DType::kInt64:
      return same_or(Type<std::int64_t>(), Type<std::int64_t>());
    case DType::kFloat16:
      return same_or(Type<Float16>(), Type<float>());
    case DType::kBFloat16:
      return same_or(Type<BFloat16>(), Type<float>());
    case DType::kFloat32:
      return same_or(Type<float>(), Type<float>());
    case DType::kFloat64:
      return same_or(Type<double>(), Type<double>());
    case DType::kComplex64:
      return same_or(Type<std::complex<float>>(), Type<std::complex<float>>());
    case DType::kComplex128:
      return same_or(Type<std::complex<double>>(), Type<std::complex<double>>());
    case DType::kBool:
      break;
  }
  throw Error(ErrorCode::kInvalidArgument, std::string(to_string(input)) + " has no sum");
}

// Borrowed memory has any alignment.
template <class T>
T load(const std::byte* memory, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, memory + index * sizeof(T), sizeof(T));
  return value;
}

template <class Accumulator, class Input>
Accumulator converted(Input value) noexcept {
  if constexpr (std::same_as<Input, Float16> || std::same_as<Input, BFloat16>) {
    return value.to_float();
  } else {
    return static_cast<Accumulator>(value);
  }
}

// Adds; integers wrap, and say so.
template <class T>
bool add_overflows(T& sum, T value) noexcept {
  if constexpr (std::integral<T>) {
    return __builtin_add_overflow(sum, value, &sum);
  } else {
    sum += value;
    return false;
  }
}

// --- densify -----------------------------------------------------------------------------------------

// Each segment owns a run of dense rows: it clears them and adds whatever falls into them, in the order of
// the positions. So the result does not depend on who runs which segment, or on how many there are.
template <class Input, class Accumulator>
struct Scatter {
  const std::byte* values;
  Accumulator* dense;
  const std::vector<std::size_t>& indices;
  std::size_t dense_rows;
  std::size_t row_elements;
  std::uint32_t segments;
  std::atomic<bool> has_overflowed{false};  // relaxed: read after run_segments, which synchronises

  static void run(void* context, std::uint32_t segment) noexcept {
    static_cast<Scatter*>(context)->run_segment(segment);
  }

  void run_segment(std::size_t segment) noexcept {
    const std::size_t first = dense_rows * segment / segments;
    const std::size_t last = dense_rows * (segment + 1) / segments;
    std::fill(dense + first * row_elements, dense + last * row_elements, Accumulator());
    bool overflows = false;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      if (indices[row] < first || indices[row] >= last) continue;
      Accumulator* const sums = dense + indices[row] * row_elements;
      for (std::size_t i = 0; i < row_elements; ++i) {
        const auto value = converted<Accumulator>(load<Input>(values, row * row_elements + i));
        overflows |= add_overflows(sums[i], value);
      }
    }
    if (overflows) has_overflowed.store(true, std::memory_order_relaxed);
  }
};

std::uint32_t segments_for(std::size_t bytes, const engine::ThreadedEngine& engine) noexcept {
  const std::size_t worthwhile = bytes / std::max<std::size_t>(1, engine.segment_bytes()) + 1;
  return static_cast<std::uint32_t>(std::min<std::size_t>(worthwhile, engine.threads()));
}

std::int64_t rows_of(const Shape& dense_shape, const IndexedSlices& slices, std::string_view name) {
  const Shape& values = slices.values.shape();
  const bool fits = dense_shape.rank() == values.rank() && dense_shape.rank() > 0 &&
                    std::ranges::equal(dense_shape.extents().subspan(1), values.extents().subspan(1));
  if (!fits) {
    refuse(name, "values of shape " + values.to_string() + " in a dense shape of " + dense_shape.to_string() +
                     "; expected equal extents but for the first");
  }
  return dense_shape[0];
}

}  // namespace

void check_slices(const IndexedSlices& slices, std::string_view name, const Device& defaults) {
  if (!slices.values) refuse(name, "the values of the IndexedSlices refer to nothing");
  if (!slices.indices) refuse(name, "the indices of the IndexedSlices refer to nothing");
  const Shape& values = slices.values.shape();
  const Shape& indices = slices.indices.shape();
  const DType type = slices.indices.dtype();
  if (values.rank() == 0) refuse(name, "the values of the IndexedSlices are a scalar; expected rows, [k,…]");
  if (type != DType::kInt32 && type != DType::kInt64) {
    refuse(name, "the indices of the IndexedSlices are of " + std::string(to_string(type)) +
                     "; expected int32 or int64");
  }
  if (indices.rank() != 1 || indices[0] != values[0]) {
    refuse(name, "the indices of the IndexedSlices have shape " + indices.to_string() + ", the values " +
                     values.to_string() + "; expected [" + std::to_string(values[0]) +
                     "], an index for each row");
  }
  const Device values_device = slices.values.device().canonical(defaults);
  const Device indices_device = slices.indices.device().canonical(defaults);
  if (values_device != indices_device) {
    refuse(name, "the values of the IndexedSlices are on " + values_device.to_string() + ", the indices on " +
                     indices_device.to_string() + "; expected one device");
  }
  if (slices.dense_shape) rows_of(*slices.dense_shape, slices, name);
}

std::vector<std::size_t> checked_indices(const IndexedSlices& slices, std::optional<std::int64_t> bound,
                                         std::string_view name) {
  return checked_indices(IndexRange{slices.indices, 0, slices.indices.shape().elements()}, bound, name);
}

std::vector<std::size_t> checked_indices(const IndexRange& range, std::optional<std::int64_t> bound,
                                         std::string_view name) {
  const Tensor here = on_host(range.indices);
  const auto* const memory = static_cast<const std::byte*>(here.memory());
  const bool is_wide = range.indices.dtype() == DType::kInt64;
  std::vector<std::size_t> indices(range.count);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const std::size_t at = range.first + row;
    const std::int64_t index = is_wide ? load<std::int64_t>(memory, at) : load<std::int32_t>(memory, at);
    if (index < 0 || (bound && index >= *bound)) {
      refuse(name, "row " + std::to_string(row) + " has index " + std::to_string(index) +
                       "; expected 0 or more" +
                       (bound ? " and less than " + std::to_string(*bound) + ", the rows of the dense shape"
                              : std::string()));
    }
    indices[row] = static_cast<std::size_t>(index);
  }
  return indices;
}

DType densified_dtype(ReduceOp op, DType input) noexcept {
  const Element accumulator = accumulator_of(op, element_of(input));
  // Beyond the types of tensors are the 128-bit ones, in which 64-bit integers are summed.
  return static_cast<int>(accumulator) < kNumDTypes ? static_cast<DType>(accumulator) : input;
}

Tensor densify(const IndexedSlices& slices, const Shape& dense_shape, DType accumulate_as,
               std::string_view name, Overflow overflow) {
  if (!is_on_host(slices.values)) {
    return copy_on(densify(on_host(slices), dense_shape, accumulate_as, name, overflow),
                   slices.values.device());
  }
  const std::int64_t dense_rows = rows_of(dense_shape, slices, name);
  const std::vector<std::size_t> indices = checked_indices(slices, dense_rows, name);
  Tensor dense = Tensor::empty(accumulate_as, dense_shape, slices.values.device());
  if (dense_shape.elements() == 0) return dense;
  engine::ThreadedEngine& engine = host_engine();
  with_types(
      slices.values.dtype(), accumulate_as,
      [&]<class Input, class Accumulator>(Type<Input>, Type<Accumulator>) {
        const auto rows = static_cast<std::size_t>(dense_rows);
        Scatter<Input, Accumulator> scatter{.values = static_cast<const std::byte*>(slices.values.memory()),
                                            .dense = dense.data<Accumulator>().data(),
                                            .indices = indices,
                                            .dense_rows = rows,
                                            .row_elements = dense_shape.elements() / rows,
                                            .segments = segments_for(dense.bytes(), engine)};
        engine.run_segments(scatter.segments, scatter.run, &scatter);
        if (overflow == Overflow::kRefused && scatter.has_overflowed.load(std::memory_order_relaxed)) {
          throw Error(ErrorCode::kUnimplemented, std::string(name) +
                                                     ": rows of one index add up to more than " +
                                                     std::string(to_string(accumulate_as)) +
                                                     " holds; a MEAN that mixes such IndexedSlices with " +
                                                     "dense tensors is not available yet");
        }
      });
  return dense;
}

Tensor widened(const Tensor& tensor, DType accumulate_as) {
  if (!is_on_host(tensor)) return copy_on(widened(on_host(tensor), accumulate_as), tensor.device());
  Tensor wide = Tensor::empty(accumulate_as, tensor.shape(), tensor.device());
  with_types(tensor.dtype(), accumulate_as,
             [&]<class Input, class Accumulator>(Type<Input>, Type<Accumulator>) {
               const auto* const from = static_cast<const std::byte*>(tensor.memory());
               const std::span<Accumulator> to = wide.data<Accumulator>();
               for (std::size_t i = 0; i < to.size(); ++i)
                 to[i] = converted<Accumulator>(load<Input>(from, i));
             });
  return wide;
}

}  // namespace onesum::api
