// Rows of IndexedSlices merged by the plainest code (docs/semantics.md, 4.7), and values to merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <onesum/cross_device_ops.h>

#include "support/bits.h"

namespace onesum::testing {

// Options that ask for merged rows.
CommunicationOptions merging();

// The sum over the canonical tree, which splits n at the largest power of two below n; who is absent is left
// out.
template <class T>
std::optional<T> sum_of_present(std::span<const std::optional<T>> replicas) {
  if (replicas.size() == 1) return replicas[0];
  std::size_t left = 1;
  while (2 * left < replicas.size()) left *= 2;
  const std::optional<T> a = sum_of_present(replicas.first(left));
  const std::optional<T> b = sum_of_present(replicas.subspan(left));
  if (a && b) return *a + *b;
  return a ? a : b;
}

struct MergedRows {
  std::vector<std::int64_t> rows;
  std::vector<std::byte> values;
};

MergedRows merged_rows(ReduceOp op, const PerReplica& value);

struct SlicesForm {
  DType dtype = DType::kFloat32;
  std::size_t replicas = 1;
  std::size_t most_rows = 1;      // of a replica
  std::int64_t indices = 1;       // different ones
  std::vector<std::int64_t> row;  // shape of one
};

PerReplica random_slices(const SlicesForm& form, std::uint64_t seed, Fill how);

// The first one that a replica has.
std::optional<Shape> dense_shape(const PerReplica& value);

// Every component of `found` is the sum or mean of `value`; `what` begins messages.
void expect_merged(const DistributedValues& found, ReduceOp op, const PerReplica& value,
                   const MergedRows& expected, const std::string& what);

// Memory of the caller's, as large as what comes.
PerReplica blank_results(ReduceOp op, const PerReplica& value, const MergedRows& expected,
                         const std::vector<Device>& devices);

}  // namespace onesum::testing
