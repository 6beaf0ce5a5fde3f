// The same replicas laid out over workers in many ways, and their sums and means by the plainest code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/all_reduce.h>

#include "base/log.h"
#include "conformance/ways.h"

namespace onesum::testing {

// W workers of G devices.
struct Layout {
  int workers = 1;
  int devices = 1;
  std::string name() const;
};

// All with this many devices.
std::vector<Layout> layouts_of(int devices);

// "/job:worker/task:0" …
std::vector<std::string> worker_names(int workers);
std::string device_name(int worker, int device);
// Worker by worker.
std::vector<std::string> device_names(const Layout& layout);

// Every algorithm without a ring in it, alone and as a hierarchy of two; and those with one.
const std::vector<std::string>& canonical_algorithms();
const std::vector<std::string>& ring_algorithms();

// Of many sizes: none, one, two, a prime, about as many elements as replicas, a few hundred; scalars, vectors
// and matrices.
std::vector<Shape> many_shapes(std::size_t replicas);
// The least that has all contents, and sizes below and above the number of replicas.
std::vector<Shape> few_shapes(std::size_t replicas);

// A batch of tensors of one type. Contents show every other order of additions: huge and small numbers that
// cancel, alternating exponents, subnormals, infinities, NaNs and zeros of both signs. It owns the memory
// that its values refer to.
class SameBitsBatch {
 public:
  SameBitsBatch(DType dtype, std::size_t replicas) : SameBitsBatch(dtype, replicas, many_shapes(replicas)) {}
  SameBitsBatch(DType dtype, std::size_t replicas, std::vector<Shape> shapes);

  // Replica i on devices[i]. The values share the memory of this object.
  std::vector<PerReplica> on(const std::vector<std::string>& devices) const;

  // The sum or mean of each tensor, added by recursion over the canonical tree (docs/semantics.md, 3.3).
  const std::vector<std::vector<std::byte>>& expected(ReduceOp op) const {
    return op == ReduceOp::kSum ? sums_ : means_;
  }

 private:
  DType dtype_;
  std::vector<Shape> shapes_;
  mutable std::vector<std::vector<std::vector<std::byte>>> contents_;  // of each tensor, of each replica
  std::vector<std::vector<std::byte>> sums_;
  std::vector<std::vector<std::byte>> means_;
};

// What the plan of a batch of one type makes of it, by numeric simulation: the contents of every result.
std::vector<std::vector<std::byte>> simulated_batch(const CrossDeviceOps& ops, ReduceOp op,
                                                    const std::vector<PerReplica>& values);

// Every result of every tensor holds just these bytes (NaNs aside).
::testing::AssertionResult all_hold(const std::vector<PerReplica>& results,
                                    const std::vector<std::vector<std::byte>>& expected);

inline constexpr DType kSameBitsFloats[] = {DType::kFloat16, DType::kBFloat16,  DType::kFloat32,
                                            DType::kFloat64, DType::kComplex64, DType::kComplex128};
inline constexpr DType kSameBitsIntegers[] = {DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64,
                                              DType::kUInt64};
inline constexpr int kSameBitsReplicas[] = {6, 8, 12, 15, 16};

// One point of the grids.
struct SameBitsCase {
  std::string algorithm;
  int shards = 1;
  int num_packs = 0;
  Layout layout;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Way way = Way::kReturned;
  std::string name() const;
};

// Walks through all combinations of shards, packs, operations and ways, for each algorithm by itself, while
// algorithms, layouts and types are given.
class SameBitsTurns {
 public:
  SameBitsCase next(const std::string& algorithm, const Layout& layout, DType dtype);

 private:
  std::map<std::string, std::size_t> turns_;  // by algorithm
};

// What reduces as the case says, its operation and way aside.
MultiWorkerAllReduce ops_of(const SameBitsCase& point);

// Reduces the batch as the case says and compares it with its expected sums. `values` are the batch on the
// devices of the case's layout, `ops` are its own: both serve for more than one operation.
void expect_canonical_bits(const SameBitsCase& point, const SameBitsBatch& batch);
void expect_canonical_bits(const SameBitsCase& point, const SameBitsBatch& batch, CrossDeviceOps& ops,
                           const std::vector<PerReplica>& values);

// Reduces it twice: the same bits everywhere, and those of the simulated plan.
void expect_simulated_bits(const SameBitsCase& point, const SameBitsBatch& batch);

// While it lives, the warnings that NCCL does not serve CPUs are not shown.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  LogLevel before_ = LogLevel::kError;
};

}  // namespace onesum::testing
