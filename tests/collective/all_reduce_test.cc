// Every algorithm and hierarchy, on many layouts, is proved; those without a ring in them are canonical.
#include "collective/all_reduce.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/layouts.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::collective {
namespace {

bool has_ring(const Scheme& scheme) {
  return scheme.across == Algorithm::kRing || scheme.inside == Algorithm::kRing;
}

void expect_proved(const Layout& layout, const Scheme& scheme, bool in_place) {
  SCOPED_TRACE(to_string(scheme) + " on " + layout.name() + (in_place ? " in place" : ""));
  const Topology topology = layout.topology();
  const Task task = layout.task(ReduceOp::kSum, DType::kFloat32, in_place);
  const plan::Plan plan = all_reduce(topology, task, scheme);
  plan::Proof proof;
  ASSERT_NO_THROW(proof = plan::verify(plan)) << plan::to_text(plan);
  EXPECT_EQ(proof.packs.at(0).canonical, plan.order == "canonical") << plan.order;
  EXPECT_EQ(is_canonical(topology, task, scheme), plan.order == "canonical");
  if (!has_ring(scheme)) {
    EXPECT_EQ(plan.order, "canonical");
  }
}

TEST(AllReduce, EverySchemeIsProvedOnSmallLayouts) {
  for (const Scheme& named : all_schemes()) {
    for (const std::int32_t workers : {1, 2, 3, 4, 5, 6, 7, 8, 13}) {
      for (const std::int32_t devices : {1, 2, 3, 4}) {
        for (const std::uint32_t shards : {1u, 2u, 3u}) {
          Scheme scheme = named;
          scheme.shards = shards;
          scheme.number = static_cast<std::size_t>(workers + devices);
          expect_proved({workers, devices, {}}, scheme, shards == 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace onesum::collective
