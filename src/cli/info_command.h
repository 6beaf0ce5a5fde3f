// onesum info: what this build is and what it finds on this machine.
#pragma once

namespace onesum::cli {

struct InfoOptions {
  bool json = false;
};

void run_info(const InfoOptions& options);

}  // namespace onesum::cli
