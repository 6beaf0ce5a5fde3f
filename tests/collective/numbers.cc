#include "collective/numbers.h"

#include <gtest/gtest.h>

#include "collective/sums.h"
#include "support/canonical_sum.h"

namespace onesum::collective {

plan::Bytes simulated_result(const Case& tried, const std::vector<plan::Bytes>& replicas,
                             std::uint64_t seed) {
  const std::size_t elements = replicas.front().size() / size_of(tried.dtype);
  plan::SimulateOptions options;
  options.seed = seed;
  options.slots = 1 + seed % 2;
  const plan::BytesOfPacks results = plan::simulate(tried.plan(), {{elements}, {}}, {replicas}, options);
  for (const plan::Bytes& result : results.at(0)) EXPECT_EQ(result, results[0].front());
  return results[0].front();
}

void expect_canonical_sum(const Case& tried, std::size_t elements, std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(tried.layout.num_replicas());
  const std::vector<plan::Bytes> replicas = nasty_replicas(tried.dtype, n, elements, seed);
  const plan::Bytes found = simulated_result(tried, replicas, seed);
  const bool is_known =
      is_exact(tried.dtype) || is_canonical(tried.layout.topology(), tried.task(), tried.scheme);
  if (!is_known) return;
  ASSERT_EQ(found, testing::canonical_result(tried.op, tried.dtype, replicas))
      << tried.name() << ", " << elements << " elements, seed " << seed;
}

void expect_one_result(std::int32_t replicas, const std::vector<DType>& dtypes, std::size_t first,
                       std::size_t stride) {
  constexpr std::size_t kElements = 41;
  for (const DType dtype : dtypes) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const std::vector<plan::Bytes> inputs =
          nasty_replicas(dtype, static_cast<std::size_t>(replicas), kElements, 7);
      const plan::Bytes expected = testing::canonical_result(op, dtype, inputs);
      std::size_t number = 0;
      for (std::int32_t workers = 1; workers <= replicas; ++workers) {
        if (replicas % workers != 0) continue;
        for (const Scheme& named : all_schemes()) {
          for (const std::uint32_t shards : {1U, 2U, 3U}) {
            if (has_ring(named) || number++ % stride != first % stride) continue;
            Case tried{{workers, replicas / workers, {}}, named, op, dtype};
            tried.scheme.shards = shards;
            tried.scheme.number = number % 5;
            tried.in_place = number % 2 == 0;
            ASSERT_EQ(simulated_result(tried, inputs, number), expected) << tried.name();
          }
        }
      }
    }
  }
}

}  // namespace onesum::collective
