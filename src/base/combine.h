// How two values become one: what the tree of a reduction does at each of its nodes.
//
// A ReduceOp is a Combine, and of MEAN a division in the end. All of them commute to the bit (of a NaN
// neither sign nor payload is promised).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <onesum/dtype.h>
#include <onesum/options.h>

#include "base/combine_kinds.h"
#include "base/element.h"

namespace onesum {

inline constexpr ReduceOp kLastReduceOp = ReduceOp::kBitXor;

std::string_view to_string(Combine combine) noexcept;                  // "sum", "product", …
std::optional<Combine> parse_combine(std::string_view text) noexcept;  // exact names only

std::string_view name_of(ReduceOp op) noexcept;  // "sum", "mean", "product", …
std::optional<ReduceOp> reduce_op_named(std::string_view name) noexcept;
std::string reduce_op_names();  // "sum, mean, product, …"

// "bool has no sum; it has product, min, …": for messages about what is_defined says no to.
std::string why_undefined(ReduceOp op, DType dtype);

// What an operation of callers does at the nodes of the tree.
Combine combine_of(ReduceOp op) noexcept;

// SUM and MEAN: what sparse values, accumulation functions and native collectives are for.
constexpr bool is_sum_or_mean(ReduceOp op) noexcept { return op == ReduceOp::kSum || op == ReduceOp::kMean; }

// Whether values of a type may be combined. Sums of all but bool; of everything else there are products, of
// what has an order minima and maxima, of integers and bool the operations on bits. The 128-bit types, which
// exist for sums, have nothing else.
bool is_defined(Combine combine, Element element) noexcept;

}  // namespace onesum
