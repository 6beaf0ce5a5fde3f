// A sample of all ways to die, another one in every run.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "calls.h"
#include "deaths.h"

namespace onesum::testing {
namespace {

constexpr int kTests = 4;
constexpr int kCasesOfEach = 50;
constexpr unsigned kMostOperations = 16;

// TEST_SEED repeats a run.
unsigned seed_of_run() {
  if (const char* text = std::getenv("TEST_SEED"))
    return static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  return std::random_device()();
}

// One in eight is a stop, which takes its time; one in eight takes another worker along.
Death random_death(std::mt19937& random) {
  Death death;
  const auto below = [&](std::size_t count) { return static_cast<int>(random() % count); };
  const auto& specs = all_specs();
  death.transport = below(2) == 0 ? "shm" : "tcp";
  death.spec = specs[random() % specs.size()];
  death.how = below(2) == 0 ? "die" : "exit";
  death.rank = below(4);
  death.call = below(3);
  death.operation = below(kMostOperations);
  const int special = below(8);
  if (special == 0) death.how = "stop";
  if (special == 1) death.also = (death.rank + 1 + below(3)) % 4;
  return death;
}

class DeathSample : public ::testing::TestWithParam<int> {};

TEST_P(DeathSample, IsSurvived) {
  const unsigned seed = seed_of_run();
  std::mt19937 random(seed + static_cast<unsigned>(GetParam()));
  DeathWatch watch;
  int happened = 0;
  for (int i = 0; i < kCasesOfEach; ++i) {
    if (watch.see(random_death(random))) ++happened;
    if (HasFailure()) break;
  }
  std::printf("TEST_SEED=%u: %d of %d deaths happened\n%s", seed, happened, kCasesOfEach,
              watch.figures().c_str());
  EXPECT_GT(happened, kCasesOfEach / 4);
}

INSTANTIATE_TEST_SUITE_P(Part, DeathSample, ::testing::Range(0, kTests));

}  // namespace
}  // namespace onesum::testing
