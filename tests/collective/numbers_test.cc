// All-reduces of numbers, simulated: canonical algorithms give the bits of the canonical sum, whatever the
// layout, the number of elements and the type.
#include "collective/numbers.h"

#include <gtest/gtest.h>

#include "collective/sums.h"
#include "support/bits.h"
#include "support/canonical_sum.h"

namespace onesum::collective {
namespace {

TEST(AllReduceNumbers, AreTheCanonicalSumForAnyNumberOfElements) {
  std::uint64_t turn = 0;
  for (const Scheme& named : all_schemes()) {
    for (const Layout& layout : {Layout{3, 2, {}}, Layout{2, 3, {5, 0, 3, 1, 4, 2}}, Layout{5, 1, {}}}) {
      const auto n = static_cast<std::size_t>(layout.num_replicas());
      for (const std::size_t elements :
           {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7}, n - 1, n + 1, std::size_t{97}}) {
        Case tried{layout, named};
        tried.dtype = types_with_sums()[turn % types_with_sums().size()];
        tried.op = turn % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean;
        tried.scheme.shards = static_cast<std::uint32_t>(1 + turn % 3);
        tried.in_place = turn % 4 < 2;
        expect_canonical_sum(tried, elements, ++turn);
        if (HasFatalFailure()) return;
      }
    }
  }
}

struct OperationOn {
  ReduceOp op;
  DType dtype;
};
constexpr OperationOn kOthers[] = {
    {ReduceOp::kProduct, DType::kFloat32},   {ReduceOp::kProduct, DType::kFloat16},
    {ReduceOp::kProduct, DType::kComplex64}, {ReduceOp::kProduct, DType::kInt8},
    {ReduceOp::kMin, DType::kBFloat16},      {ReduceOp::kMin, DType::kInt64},
    {ReduceOp::kMax, DType::kFloat64},       {ReduceOp::kMax, DType::kUInt64},
    {ReduceOp::kBitAnd, DType::kInt8},       {ReduceOp::kBitOr, DType::kUInt64},
    {ReduceOp::kBitXor, DType::kInt64},
};

// What only chooses, or combines bits, gives the same in any order: also around a ring.
bool gives_the_same_in_any_order(const OperationOn& what) {
  return what.op != ReduceOp::kProduct || is_exact(what.dtype);
}

TEST(AllReduceNumbers, OfEveryOperationAreThoseOfTheCanonicalTree) {
  std::uint64_t turn = 0;
  for (const Scheme& named : all_schemes()) {
    for (const Layout& layout : {Layout{3, 2, {}}, Layout{2, 3, {5, 0, 3, 1, 4, 2}}, Layout{5, 1, {}}}) {
      const OperationOn& what = kOthers[turn % std::size(kOthers)];
      Case tried{layout, named, what.op, what.dtype};
      tried.scheme.shards = static_cast<std::uint32_t>(1 + turn % 3);
      tried.in_place = turn % 4 < 2;
      const std::vector<plan::Bytes> replicas =
          nasty_replicas(what.dtype, static_cast<std::size_t>(layout.num_replicas()), 97, ++turn);
      const plan::Bytes found = simulated_result(tried, replicas, turn);
      if (has_ring(named) && !gives_the_same_in_any_order(what)) continue;
      ASSERT_TRUE(
          testing::same_bits(what.dtype, found, testing::canonical_result(what.op, what.dtype, replicas)))
          << tried.name();
    }
  }
}

// Another order gives other numbers: what is checked above is not true of everything.
TEST(AllReduceNumbers, OfARingAreOthers) {
  const std::vector<plan::Bytes> replicas = nasty_replicas(DType::kFloat32, 6, 97, 1);
  Case ring{{3, 2, {}}, *scheme_named("xring", 1)};
  EXPECT_NE(simulated_result(ring, replicas),
            testing::canonical_result(ReduceOp::kSum, DType::kFloat32, replicas));
}

TEST(AllReduceNumbers, AreTheSameOnEveryLayoutAndForEveryScheme) {
  std::size_t first = 0;
  for (const std::int32_t replicas : {6, 8, 12, 15, 16}) {
    expect_one_result(replicas, types_with_sums(), first++, 47);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace onesum::collective
