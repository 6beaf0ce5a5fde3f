#include "engine/conformance.h"
#include "engine/host/host_engine.h"

namespace onesum::engine::testing {
namespace {

EngineUnderTest host_with(unsigned threads) {
  return {.name = std::to_string(threads) + "_threads",
          .make = [threads] { return make_host_engine({.threads = threads, .pool_limit_bytes = {}}); }};
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceConformance, ::testing::Values(host_with(1), host_with(2), host_with(5)),
                         [](const auto& tested) { return "threads_" + tested.param.name.substr(0, 1); });

TEST(HostEngine, IsTheCpu) {
  const auto engine = make_host_engine({.threads = 3, .pool_limit_bytes = {}});
  EXPECT_EQ(engine->device_type(), "CPU");
  EXPECT_EQ(engine->threads(), 3U);
  EXPECT_NE(engine->description().find(" kernels, 3 threads"), std::string::npos) << engine->description();
}

}  // namespace
}  // namespace onesum::engine::testing
