// The extents of a tensor. No extents is a scalar (one element); an extent of zero makes the tensor empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <onesum/export.h>

namespace onesum {

class ONESUM_API Shape {
 public:
  Shape() = default;  // a scalar
  // Throws invalid_argument for a negative extent or more than 2^62 elements.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  std::span<const std::int64_t> extents() const noexcept { return extents_; }
  std::size_t rank() const noexcept { return extents_.size(); }
  std::int64_t operator[](std::size_t axis) const { return extents_[axis]; }
  std::size_t elements() const noexcept { return elements_; }
  std::string to_string() const;  // "[2,3]", "[]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> extents_;
  std::size_t elements_ = 1;
};

}  // namespace onesum
