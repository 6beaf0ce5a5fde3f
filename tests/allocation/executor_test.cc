// Running a program allocates nothing, with messages between workers of this process as without.
#include "exec/executor.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "counting.h"
#include "engine/host/host_engine.h"
#include "exec/bind.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::exec {
namespace {

// Two workers exchange their replicas and sum them, in two types.
constexpr std::string_view kExchange = R"(plan exchange
order canonical
devices 0 1
p0 reduce float32 to float32; replicas 0 1; destinations 0 1
c0 0 -> 1
c1 1 -> 0
b0 input 0 of p0 on 0 float16
b1 input 1 of p0 on 1 float16
b2 output 0 of p0 on 0 float32
b3 output 1 of p0 on 1 float32
b4 slot c0 of p0 on 0 float32
b5 view c0 of p0 on 1 float32
b6 slot c1 of p0 on 1 float32
b7 view c1 of p0 on 0 float32
lane of rank 0
reduce on 0 in float32: b4 = b0
recv c1: b7
reduce on 0 in float32: b2 = b0 + b7
release c1
lane of rank 1
reduce on 1 in float32: b6 = b1
recv c0: b5
reduce on 1 in float32: b3 = b5 + b1
release c0
)";

TEST(ExecutorAllocation, NoneWhereMessagesAreSent) {
  if (!testing::is_counting_possible())
    GTEST_SKIP() << "NOT TESTED: sanitizers replace the allocation functions themselves";
  constexpr std::size_t kElements = 100000;
  const plan::Plan plan = plan::parse_text(kExchange);
  ASSERT_NO_THROW(plan::verify(plan));
  const std::unique_ptr<engine::ThreadedEngine> engine =
      engine::make_host_engine({.threads = 2, .pool_limit_bytes = {}});
  const std::vector<plan::PackTable> tables{{{{kElements, 0, 2}}, {}, 1}};
  Instance instance(exec::bind(plan, tables, 4, {*engine}));
  std::vector<std::vector<float>> memory(4, std::vector<float>(kElements));
  for (std::size_t i = 0; i < 4; ++i) {
    instance.bases()[i] = reinterpret_cast<std::byte*>(memory[i].data());
  }
  instance.bases_changed();
  const auto run = [&] { Executor::run(instance, Executor::Deadline::max()); };
  run();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(testing::allocated_by(run).calls, 0U);
}

}  // namespace
}  // namespace onesum::exec
