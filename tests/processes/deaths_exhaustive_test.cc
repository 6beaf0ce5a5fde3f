// Every way to die: at every operation of a call that all workers meet for the first time, and of one that
// they know, for every algorithm, every worker and every transport.
#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calls.h"
#include "deaths.h"

namespace onesum::testing {
namespace {

class EveryDeath : public ::testing::TestWithParam<std::tuple<std::string, const char*, const char*>> {};

TEST_P(EveryDeath, IsSurvived) {
  const auto& [spec, transport, how] = GetParam();
  DeathWatch watch;
  int happened = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (const int call : {0, 1}) {
      Death death{transport, spec, how, rank, call};
      while (!HasFailure() && watch.see(death)) {
        ++happened;
        ++death.operation;
      }
    }
  }
  std::printf("%d deaths\n%s", happened, watch.figures().c_str());
  EXPECT_GT(happened, 0);
}

std::string name_of(const ::testing::TestParamInfo<EveryDeath::ParamType>& tested) {
  std::string name = fmt::format("{}_{}_{}", std::get<0>(tested.param), std::get<1>(tested.param),
                                 std::get<2>(tested.param));
  std::ranges::replace_if(name, [](char c) { return c == '/' || c == '#'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Case, EveryDeath,
                         ::testing::Combine(::testing::ValuesIn(all_specs()), ::testing::Values("shm", "tcp"),
                                            ::testing::Values("die", "exit", "stop")),
                         name_of);

}  // namespace
}  // namespace onesum::testing
