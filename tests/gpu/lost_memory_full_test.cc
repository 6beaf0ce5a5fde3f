// Memory in which a GPU may work for ever is never given back.
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/callers.h"
#include "gpu/emulator.h"
#include "gpu/gpus.h"
#include "support/waiting.h"

namespace onesum::testing {
namespace {

// An object waits for what it has given to GPUs before it goes, for ten seconds.
TEST(LostMemory, IsWhatAGpuDoesNotComeToTheEndOf) {
  ONESUM_NEEDS_EMULATOR();
  emulator().reset();
  Callers callers(4);
  callers.fill();
  Door door;
  std::function<void()> hold_up = [&] { door.pass(); };
  callers.streams[0]->call(hold_up);
  std::vector<PerReplica> values = {callers.value()};
  std::make_unique<HierarchicalCopyAllReduce>()->batch_reduce_into(ReduceOp::kSum, values, values);
  door.open();
  callers.expect(10);
  EXPECT_EQ(emulator().violations(), 0U) << emulator().last_violation();
}

}  // namespace
}  // namespace onesum::testing
