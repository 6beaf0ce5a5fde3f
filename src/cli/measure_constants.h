// The constants of this machine, found by timing prepared calls.
#pragma once

#include "plan/cost_constants.h"

namespace onesum::cli {

// Takes about two seconds and 256 MiB.
//  - gamma: a large sum over devices of one process, which is nothing but memory traffic.
//  - step: a call of many steps with an element each, against a call of one.
//  - links: small and large sums over two embedded workers, and the latency and bandwidth with which
//    plan/cost.h would predict just these times. What memory traffic explains alone costs the link nothing.
plan::CostConstants measure_constants();

}  // namespace onesum::cli
