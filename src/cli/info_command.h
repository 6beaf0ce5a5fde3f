// onesum info: what this build is and what it finds on this machine.
#pragma once

namespace onesum::cli {

struct InfoOptions {
  bool json = false;
  bool measure = false;  // the constants of this machine first, and keep them in its file
  bool cluster = false;  // who takes part instead, and which variables say so
};

void run_info(const InfoOptions& options);

}  // namespace onesum::cli
