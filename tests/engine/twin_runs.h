// Runs of the GPU kernels' twins, compared with the host's kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/reference.h"

namespace onesum::engine::testing {

struct TwinPiece {
  std::size_t first = 0;
  std::size_t count = 0;
  // Of pointer i, destinations first: i times the second more than the first.
  std::size_t misalignment = 0;
  std::size_t misalignment_step = 0;
};

// Everything one run depends on, but the sources' content.
struct TwinRun {
  ReduceForm form;  // without merges
  std::vector<std::uint8_t> merges;
  std::vector<std::uint8_t> is_wide;  // empty: none
  std::vector<TwinPiece> pieces;
  int aliased = -1;  // this source is the first destination, in every piece
  unsigned blocks = 3;
  unsigned threads_of_block = 7;
};

std::string describe(const TwinRun& run);

// Contents[piece][source].
using Contents = std::vector<std::vector<Bytes>>;
Contents random_contents(const TwinRun& run, std::mt19937& random);

// Launches the twin as often as it takes, on addresses that only the translation makes the host's. Says what
// is wrong with the destinations, with the sources, with memory around them, or with the footprints; empty if
// nothing. Copies are compared bit by bit, otherwise all NaN are the same.
std::string difference_from_host(const TwinRun& run, const Contents& contents);

}  // namespace onesum::engine::testing
