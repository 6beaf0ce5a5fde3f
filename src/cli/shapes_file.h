// Files that list tensors, one a line: a name, then the extents (none: a scalar).
//
//   conv1.weight 64 3 7 7
//   bn1.weight 64
//
// Empty lines and lines that begin with '#' are skipped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <onesum/shape.h>

namespace onesum::cli {

struct NamedShape {
  std::string name;
  Shape shape;
};

// Throws invalid_argument naming the file and the line, also if it lists nothing.
std::vector<NamedShape> read_shapes(const std::string& path);

}  // namespace onesum::cli
