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
// It is a shuffle (collective/shuffle.h) with one owner: replicas of other workers arrive in messages, and
// results leave in one message for each worker. Steps: 1 inside a worker (2 with a user's function, whose
// result is then copied out; what other workers send it is copied out of their messages first). Bytes: N·B
// read and D·B written for N replicas and D results of B bytes. `on` may be any device, neither source nor
// destination.
#pragma once

#include "collective/task.h"

namespace onesum::collective {

enum class Accumulation : std::uint8_t {
  kTree,      // our sum, canonical
  kFunction,  // the user's accumulation_fn on whole tensors
};

// For tasks of Contract::kReduce.
plan::Plan one_device(const Topology& topology, const Task& task, std::int32_t on,
                      Accumulation accumulation = Accumulation::kTree);

}  // namespace onesum::collective
