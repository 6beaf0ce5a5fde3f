// What a plan takes, in multiples of the bytes of the tensor that it reduces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onesum::algorithms_doc {

// The all-reduce of one float32 tensor over `workers` of `devices` CPU devices each, of which the first is
// the worker's CPU:0.
struct Subject {
  std::string_view name;  // of the algorithm
  std::uint32_t shards = 1;
  std::int32_t workers = 2;
  std::int32_t devices = 1;
  std::int32_t machines = 1;  // among which the workers are divided, in rank order
  bool fast = false;          // numerics
};

struct Measures {
  std::size_t depth = 0;  // messages that follow each other
  std::size_t steps = 0;  // on the longest chain
  std::size_t messages = 0;
  double busiest_sends = 0;  // the device that sends most
  double all_send = 0;
  double machine_sends = 0;  // the machine that sends most to others
  double memory = 0;         // slots of channels and temporaries, on all devices together
  bool canonical = false;
  std::string expression;  // of chunk 0
};

// Builds the plan, proves it and counts.
Measures measure(const Subject& subject);

}  // namespace onesum::algorithms_doc
