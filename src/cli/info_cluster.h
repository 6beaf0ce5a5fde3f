// onesum info --cluster: who takes part, and which variables say so.
#pragma once

namespace onesum::cli {

void print_cluster(bool json);

}  // namespace onesum::cli
