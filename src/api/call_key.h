// What tells calls of different kinds apart: the key of the cache of bound calls.
//
// It covers everything a plan and a program depend on: types, shapes, devices, destinations, operation,
// options and which results are in place; not addresses. A key that was bound once needs no validation again.
#pragma once

#include "api/describe.h"
#include "api/pairs.h"
#include "base/hash.h"

namespace onesum::api {

struct CallKey {
  Fingerprint fingerprint;
  bool mixes_dense_and_sparse = false;  // inside one value: these are made dense first
  bool has_sparse = false;
  bool merges_rows = false;  // of a sparse value
};

// Runs in every call: a few nanoseconds per component, no allocation.
CallKey key_of(const CallTraits& traits, const Pairs& pairs, const CommunicationOptions& options,
               const Device& defaults);

}  // namespace onesum::api
