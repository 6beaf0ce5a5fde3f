// The constants with which plan/cost.h and plan/timeline.h predict times, and their JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace onesum::plan {

// A message arrives `latency` plus `seconds_per_byte` for each of its bytes after it was sent.
struct LinkConstants {
  double latency = 2e-6;            // seconds: publishing it and being noticed by a waiting thread
  double seconds_per_byte = 1e-10;  // 10 GB/s
  friend bool operator==(const LinkConstants&, const LinkConstants&) = default;
};

struct CostConstants {
  LinkConstants inside;   // between devices of one rank
  LinkConstants across;   // between ranks; as inside: ranks of one machine
  double gamma = 1e-10;   // seconds per byte of memory traffic: 10 GB/s read and written
  std::size_t slots = 2;  // of each channel
  double step = 1e-7;     // seconds per step: a call of nothing but one takes about that long
  friend bool operator==(const CostConstants&, const CostConstants&) = default;
};

// {"inside": {"latency": 2e-06, "seconds_per_byte": 1e-10}, "across": {...}, "gamma": 1e-10, "slots": 2,
// "step": 1e-07}. What constants_from_json reads back is equal.
std::string to_json(const CostConstants& constants);

// What is left out keeps its default. Throws invalid_argument naming the key ("across.latency"), what was
// found and what was expected: seconds are finite and not negative, slots from 1 to 65535; of an unknown key
// the nearest known one.
CostConstants constants_from_json(std::string_view text);

}  // namespace onesum::plan
