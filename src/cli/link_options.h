// The cluster that a predicted time is for, as the command line describes it.
#pragma once

#include <optional>
#include <string>

#include "plan/cost_constants.h"

namespace onesum::cli {

// Absent: as in the file, or without one as in force in this process (api/machine_constants.h).
struct LinkOptions {
  std::optional<std::string> constants_file;
  std::optional<double> latency;           // seconds, across workers
  std::optional<double> bandwidth;         // bytes per second, across workers
  std::optional<double> inside_latency;    // the same inside a worker
  std::optional<double> inside_bandwidth;  //
  std::optional<double> reduce_speed;      // bytes of memory read and written per second
};

// The constants so described; they are in force from now on. Throws Error where a file is wrong.
plan::CostConstants use_links(const LinkOptions& options);

// "links across workers: 2 µs, 10 GB/s; inside: …; memory traffic: 10 GB/s; 100 ns a step".
std::string to_text(const plan::CostConstants& constants);

}  // namespace onesum::cli
