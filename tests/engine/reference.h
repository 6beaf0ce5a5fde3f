// What a reduce must give, written as plainly as possible, and buffers to check engines against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/element.h"
#include "engine/device.h"

namespace onesum::engine::testing {

using Bytes = std::vector<std::byte>;
using Sizes = std::initializer_list<std::size_t>;

// Whether the form has a meaning.
bool is_defined(const ReduceForm& form);

// The result, element by element in the order of the tree.
Bytes reference_reduce(const ReduceForm& form, std::span<const Bytes> sources, std::size_t count);

// The same of what is no sum, of two sources and more (reference_operations.cc).
bool is_defined_operation(const ReduceForm& form);
Bytes reference_operation(const ReduceForm& form, std::span<const Bytes> sources, std::size_t count);

// Empty if both hold the same elements (all NaN are the same), else what differs first.
std::string difference(Element element, const Bytes& found, const Bytes& expected);

// Conversions of 16-bit floats, by arithmetic on doubles.
float float_of_half(std::uint16_t bits);
std::uint16_t half_of_float(float value);
float float_of_bfloat(std::uint16_t bits);
std::uint16_t bfloat_of_float(float value);

// Random elements: of integers any bits, of floats a mix of magnitudes with NaN, infinities, -0 and
// subnormals.
Bytes random_elements(Element element, std::size_t count, std::mt19937& random);

// The merges of the canonical tree, and of a random one.
std::vector<std::uint8_t> canonical_tree(std::size_t sources);
std::vector<std::uint8_t> random_tree(std::size_t sources, std::mt19937& random);

inline constexpr Element kAllElements[] = {
    Element::kBool,     Element::kUInt8,   Element::kInt8,    Element::kUInt16,    Element::kInt16,
    Element::kUInt32,   Element::kInt32,   Element::kUInt64,  Element::kInt64,     Element::kFloat16,
    Element::kBFloat16, Element::kFloat32, Element::kFloat64, Element::kComplex64, Element::kComplex128,
    Element::kInt128,   Element::kUInt128};

}  // namespace onesum::engine::testing
