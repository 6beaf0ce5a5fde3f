// Values whose components are partly dense and partly sparse, made dense: their sum is a dense tensor.
#pragma once

#include <optional>
#include <vector>

#include "api/describe.h"
#include "api/pairs.h"

namespace onesum::api {

// Owns what the pairs() refer to. Pairs that mix nothing are passed on as they are.
class DenseCopies {
 public:
  // Throws what is wrong with a mixed value.
  DenseCopies(const CallTraits& traits, const Pairs& pairs, const Device& defaults);
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
