// Times of other systems, from a file of JSON objects, one a line, as the bench itself prints them:
//
//   {"peer":"gloo","case":"shm_in","world":4,"bytes":1024,"us_median":31.5,…}
//
// Other fields do not matter. A file may hold several worlds (numbers of replicas), and several lines for the
// same case and size, of which the median counts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/bench_plot.h"

namespace onesum::cli {

// The lines of one world. Throws invalid_argument naming the file and the line that cannot be read, or the
// worlds that are there if this one is not.
std::vector<PlotPoint> read_compared(const std::string& path, std::size_t world);

}  // namespace onesum::cli
