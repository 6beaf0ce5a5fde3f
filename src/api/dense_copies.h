// Values whose components are partly dense and partly sparse, made dense: their sum is a dense tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <onesum/dtype.h>
#include <onesum/shape.h>

#include "api/describe.h"
#include "api/pairs.h"

namespace onesum::api {

// A pair of a call that mixes dense and sparse components, those of all workers together.
struct MixedPair {
  std::size_t pair = 0;
  Shape shape;                            // of the dense ones
  DType dtype = DType::kFloat32;          // of all of them
  DType made_dense_as = DType::kFloat32;  // in which they meet
};

// Finds these pairs and describes their components anew, as DenseCopies makes them. Throws what is wrong with
// them, but for the contents of indices.
std::vector<MixedPair> make_dense(planner::Request& request);

// Owns what the pairs() refer to: of mixed pairs, dense copies of this process's components. Other pairs are
// passed on as they are.
class DenseCopies {
 public:
  // Throws invalid_argument for an index outside the dense shape, and for a result that lies on a component.
  DenseCopies(const CallTraits& traits, const Pairs& pairs, std::span<const MixedPair> mixed,
              const Device& defaults);
  DenseCopies(const DenseCopies&) = delete;
  DenseCopies& operator=(const DenseCopies&) = delete;

  Pairs pairs() const { return {pairs_.size(), this, get}; }

 private:
  static Pair get(const void* self, std::size_t index) {
    return static_cast<const DenseCopies*>(self)->pairs_[index];
  }

  std::vector<PerReplica> values_;  // of mixed pairs
  std::vector<Pair> pairs_;
};

}  // namespace onesum::api
