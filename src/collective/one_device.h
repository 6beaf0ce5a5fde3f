// Reduction to one device: one device reads every replica, sums them in canonical order and writes every
// result.
//
//   device   0      1      2      3
//   before   a      b      c      d
//            └──────┴──┬───┴──────┘      one step on device `on`, one pass over memory:
//                (a+b)+(c+d)             every input is read once, every output written once
//            ┌──────┬──┴───┬──────┐
//   after    s      s      s      s
//
// Steps: 1 (one per replica for concatenation; 2 with a user's function, whose result is then copied out).
// Bytes: N·B read and D·B written for N replicas and D results of B bytes. Needs devices that can address
// each other's memory, as all CPU devices of a process can. `on` may be any device, neither source nor
// destination.
#pragma once

#include "collective/task.h"

namespace onesum::collective {

enum class Accumulation : std::uint8_t {
  kTree,      // our sum, canonical
  kFunction,  // the user's accumulation_fn on whole tensors; Contract::kReduce only
};

plan::Plan one_device(const std::vector<std::int32_t>& device_rank, const Task& task, std::int32_t on,
                      Accumulation accumulation = Accumulation::kTree);

}  // namespace onesum::collective
