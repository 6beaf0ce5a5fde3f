// Executes a plan on numbers, in plain scalar code (plan/scalar.h): the oracle that executors are compared
// with.
//
// All ranks run in this thread, step by step. Which of the lanes that can go on does so is decided by a seed,
// so different seeds try different interleavings of the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "plan/sizes.h"

namespace onesum::plan {

using Bytes = std::vector<std::byte>;
using BytesOfPacks = std::vector<std::vector<Bytes>>;  // by pack, then by replica or by destination

// A kCall: the user's function writes `result`, elements of type `accumulator`.
struct SimulatedCall {
  Element accumulator = Element::kFloat32;
  std::vector<std::span<const std::byte>> sources;
  std::vector<Element> source_elements;
  std::span<std::byte> result;
};

struct SimulateOptions {
  std::uint64_t seed = 0;  // 0: lanes take turns in order; else a random interleaving
  std::size_t slots = 1;   // of each channel
  std::function<void(const SimulatedCall&)> call;
};

// inputs[p][r]: replica r of pack p in the type of its buffer; of a Contract::kConcatenate the chunks that it
// brings only. Returns the results: [p][d], destination d of pack p; of a Contract::kScatter its own chunks
// only.
//
// Throws invalid_argument if an input has the wrong length, or the plan is not well formed, breaks the rules
// of types and roles (plan/rules.h), cannot go on, uses a view that it does not hold, receives what was not
// sent, or has a kCall without options.call. Other wrong plans give wrong results: that is what it is for.
// Memory that nobody wrote holds bytes that depend on the seed.
BytesOfPacks simulate(const Plan& plan, const Sizes& sizes, const BytesOfPacks& inputs,
                      const SimulateOptions& options = {});

}  // namespace onesum::plan
