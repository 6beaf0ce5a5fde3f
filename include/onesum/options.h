// What a caller may ask of a reduction.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace onesum {

// The values of these enumerations are part of plans and wire formats: append only.
// Which operation takes which types, and what it makes of them: docs/semantics.md, section 3.
enum class ReduceOp : std::uint8_t { kSum, kMean, kProduct, kMin, kMax, kBitAnd, kBitOr, kBitXor };
enum class Implementation : std::uint8_t { kAuto, kRing, kNccl };
enum class Numerics : std::uint8_t { kCanonical, kFast, kExact };
enum class SparseRows : std::uint8_t { kConcatenate, kMergeDuplicates };

// Options of one call. They are validated when a call takes them, before any work.
struct CommunicationOptions {
  std::size_t bytes_per_pack = 0;                         // 0: decided by the library
  std::optional<std::chrono::milliseconds> timeout;       // of the whole call, from entry; absent: 30 minutes
  Implementation implementation = Implementation::kAuto;  // a hint
  Numerics numerics = Numerics::kCanonical;               // see docs/semantics.md, section 3
  SparseRows sparse_rows = SparseRows::kConcatenate;      // what becomes of rows that occur twice
};

}  // namespace onesum
