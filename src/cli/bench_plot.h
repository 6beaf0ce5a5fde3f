// A drawing of times and bandwidths over size, all axes logarithmic. SVG with a background of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace onesum::cli {

struct PlotPoint {
  std::string peer;  // "onesum", "bound", or another system
  std::string name;  // of the case
  std::size_t bytes = 0;
  double seconds = 0;
};

// Points of the same peer and name are joined by a line, in order of size. At least one point.
std::string plot_svg(std::span<const PlotPoint> points, const std::string& title);

}  // namespace onesum::cli
