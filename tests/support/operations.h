// For tests: the operations beside SUM and MEAN, and the types that take each, written down once more.
#pragma once

#include <vector>

#include <onesum/dtype.h>
#include <onesum/options.h>

namespace onesum::testing {

struct OperationOn {
  ReduceOp op;
  DType dtype;
};

// docs/semantics.md, 3.11.
inline std::vector<OperationOn> other_operations() {
  std::vector<OperationOn> all;
  for (int number = 0; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
    const bool is_float = dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
                          dtype == DType::kFloat64;
    all.push_back({ReduceOp::kProduct, dtype});
    if (is_complex) continue;
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) all.push_back({op, dtype});
    if (is_float) continue;
    for (const ReduceOp op : {ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor}) {
      all.push_back({op, dtype});
    }
  }
  return all;
}

}  // namespace onesum::testing
