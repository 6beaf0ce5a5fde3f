#include <string>

#include <onesum/error.h>
#include <onesum/shape.h>

namespace onesum {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 62;

std::string text_of(std::span<const std::int64_t> extents) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (axis > 0) text += ',';
    text += std::to_string(extents[axis]);
  }
  return text + "]";
}

// The product of the extents. The bound holds for the extents that are not zero, so that the strides of an
// empty tensor are numbers too.
std::size_t product_of(std::span<const std::int64_t> extents) {
  std::int64_t product = 1;
  bool is_empty = false;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::int64_t extent = extents[axis];
    if (extent < 0) {
      throw Error(ErrorCode::kInvalidArgument, "shape " + text_of(extents) + ": extent " +
                                                   std::to_string(axis) +
                                                   " is negative; extents are zero or more");
    }
    if (extent == 0) {
      is_empty = true;
    } else if (extent > kMostElements / product) {
      throw Error(ErrorCode::kInvalidArgument,
                  "shape " + text_of(extents) + " has more than 2^62 elements, the most a shape can have");
    } else {
      product *= extent;
    }
  }
  return is_empty ? 0 : static_cast<std::size_t>(product);
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : extents_(extents), elements_(product_of(extents_)) {}

Shape::Shape(std::span<const std::int64_t> extents)
    : extents_(extents.begin(), extents.end()), elements_(product_of(extents_)) {}

std::string Shape::to_string() const { return text_of(extents_); }

}  // namespace onesum
