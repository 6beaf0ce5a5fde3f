// IndexedSlices: checks, and the dense tensor that they stand for. Rules: docs/semantics.md, section 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/options.h>
#include <onesum/shape.h>
#include <onesum/tensor.h>

namespace onesum::api {

// Refuses slices that are not well formed (rule 4.1), by invalid_argument naming what was found and what was
// expected. Every message begins with `name`, such as "pair 3: replica on CPU:1". `defaults` complete the
// devices that are compared.
void check_slices(const IndexedSlices& slices, std::string_view name, const Device& defaults = {});

// Some of the indices of slices: `count` from number `first` on.
struct IndexRange {
  const Tensor& indices;
  std::size_t first = 0;
  std::size_t count = 0;
};

// Throws invalid_argument, beginning with `name`, for an index that is negative or not below the bound, if
// there is one, naming its row in the range, the index and the bound.
std::vector<std::size_t> checked_indices(const IndexRange& range, std::optional<std::int64_t> bound,
                                         std::string_view name);
std::vector<std::size_t> checked_indices(const IndexedSlices& slices, std::optional<std::int64_t> bound,
                                         std::string_view name);

// The type of tensor in which dense and sparse components of one value meet, so that nothing is rounded
// twice: the accumulator of a reduction (rule 3.4), except that for MEAN 64-bit integers stay what they are.
DType densified_dtype(ReduceOp op, DType input) noexcept;

enum class Overflow : std::uint8_t {
  kWraps,    // integers wrap, as in a SUM
  kRefused,  // a sum of rows that leaves the type is an error (unimplemented), for a MEAN
};

// Zeros of `dense_shape` on the slices' device, to which the rows are added in the order of their positions,
// in the type `accumulate_as`: the slices' own or their densified_dtype. The slices are well formed, and
// dense_shape has their trailing extents. Throws invalid_argument, beginning with `name`, for an index
// outside the dense shape, naming its row, the index and the bound.
Tensor densify(const IndexedSlices& slices, const Shape& dense_shape, DType accumulate_as,
               std::string_view name = "IndexedSlices", Overflow overflow = Overflow::kWraps);

// A copy in the type `accumulate_as` (as above), every element exactly what it was.
Tensor widened(const Tensor& tensor, DType accumulate_as);

}  // namespace onesum::api
