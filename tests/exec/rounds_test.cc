// Calls that are cut into rounds: whatever room there is between two workers, the results are the same.
#include "exec/rounds.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/one_device.h"
#include "engine/host/host_engine.h"
#include "harness.h"
#include "plan/compose.h"
#include "plan/sample_plans.h"
#include "plan/verify.h"
#include "support/expect_error.h"

namespace onesum::exec {
namespace {

using plan::PackTable;
using plan::Plan;
using plan::sample::types_of;
using testing::expect_error;

engine::ThreadedEngine& engine() {
  static const std::unique_ptr<engine::ThreadedEngine> host =
      engine::make_host_engine({.threads = 2, .pool_limit_bytes = {}});
  return *host;
}

engine::Limits room(std::size_t bytes, std::uint32_t messages = 1000) { return {bytes, messages, 2}; }

void run_and_expect(const Plan& plan, const std::vector<PackSize>& sizes, const engine::Limits& limits,
                    std::size_t at_least_rounds) {
  SCOPED_TRACE(plan.algorithm + " with room for " + std::to_string(limits.bytes) + " bytes");
  Harness harness(plan, sizes, engine(), 1, limits);
  harness.run();
  harness.expect_as_simulated();
  EXPECT_GE(harness.program().rounds.size(), at_least_rounds);
  harness.fill(2);
  harness.run();
  harness.expect_as_simulated();
}

std::vector<Plan> sums(std::int32_t n) {
  const plan::sample::Types types = types_of(ReduceOp::kSum, DType::kFloat32);
  std::vector<Plan> plans{plan::sample::direct(n, types), plan::sample::direct(n, types, true),
                          plan::sample::direct_in_lanes(n, types), plan::sample::ring(n, types)};
  if (n == 4) plans.push_back(plan::sample::halving_doubling(n, types, true));
  return plans;
}

TEST(Rounds, SumsWithLittleRoom) {
  for (const std::int32_t n : {2, 3, 4, 5}) {
    for (const Plan& plan : sums(n)) {
      run_and_expect(plan, {{{3001}, {}, 1}}, room(std::size_t{1} << 20), 1);
      run_and_expect(plan, {{{3001}, {}, 1}}, room(4096), 2);
      run_and_expect(plan, {{{1, 700, 0, 1501, 33}, {}, 1}}, room(2048), 2);
      run_and_expect(plan, {{{97}, {}, 1}}, room(1280), 1);
      run_and_expect(plan, {{{0}, {}, 1}}, room(1280), 1);
    }
  }
}

// Too little for a cache line of each chunk.
TEST(Rounds, AFewElementsAtATime) {
  const Plan plan = plan::sample::direct(3, types_of(ReduceOp::kSum, DType::kFloat64));
  run_and_expect(plan, {{{1000}, {}, 1}}, room(256), 40);
}

TEST(Rounds, PartialSumsOfOtherTypes) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kComplex128}) {
    run_and_expect(plan::sample::ring(3, types_of(ReduceOp::kMean, dtype)), {{{2000, 1}, {}, 1}}, room(4096),
                   2);
    run_and_expect(plan::sample::direct(4, types_of(ReduceOp::kMean, dtype)), {{{2000, 1}, {}, 1}},
                   room(2048), 2);
  }
}

TEST(Rounds, Broadcasts) {
  run_and_expect(plan::sample::chain_broadcast(4, Element::kBFloat16), {{{3, 1, 0, 7, 1000, 5}, {}, 1}},
                 room(512), 2);
}

TEST(Rounds, RowsAndPartsOfRows) {
  for (const std::int32_t n : {2, 3, 5}) {
    const Plan plan = plan::sample::ring_gather(n, Element::kFloat32);
    std::vector<std::size_t> counts;
    for (std::int32_t r = 0; r < n; ++r) counts.push_back(static_cast<std::size_t>(r) * 70);
    for (const std::size_t outer : {1U, 2U, 9U}) {
      run_and_expect(plan, {{{}, counts, outer}}, room(std::size_t{1} << 20), 1);
      run_and_expect(plan, {{{}, counts, outer}}, room(4096), 1);
      run_and_expect(plan, {{{}, counts, outer}}, room(1024), outer == 9 ? 3 : 1);
    }
  }
}

TEST(Rounds, ManyPacksShareRounds) {
  const Plan one = plan::sample::direct(3, types_of(ReduceOp::kSum, DType::kFloat32));
  const std::vector<Plan> parts(40, one);
  std::vector<PackSize> sizes;
  for (std::size_t p = 0; p < parts.size(); ++p) sizes.push_back({{p * p % 97 * 13}, {}, 1});
  run_and_expect(plan::side_by_side(parts), sizes, room(8192), 2);
  run_and_expect(plan::in_sequence(parts), sizes, room(8192), 2);
  Harness together(plan::side_by_side(parts), sizes, engine(), 1, room(std::size_t{1} << 20));
  EXPECT_EQ(together.program().rounds.size(), 1U);
  Harness few(plan::side_by_side(parts), sizes, engine(), 1, room(std::size_t{1} << 20, 8));
  EXPECT_EQ(few.program().rounds.size(), 10U);  // two messages of each pack between any two
}

TEST(Rounds, MemoryDoesNotGrowWithTheCall) {
  std::size_t bytes[2] = {};
  for (const std::size_t i : {0U, 1U}) {
    Harness harness(plan::sample::ring(3, types_of(ReduceOp::kSum, DType::kFloat32)),
                    {{{std::size_t{50000} << i}, {}, 1}}, engine(), 1, room(16384));
    for (const Memory& memory : harness.program().memory) bytes[i] += memory.bytes;
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// Every element once, whatever the room.
TEST(Rounds, TakeEveryElementOnce) {
  const Plan plan = plan::sample::halving_doubling(4, types_of(ReduceOp::kSum, DType::kFloat32));
  const Messages messages = messages_of(plan);
  for (const std::size_t elements : {1U, 63U, 64U, 255U, 256U, 257U, 9973U}) {
    for (const std::size_t bytes : {512U, 1000U, 4096U, 65536U}) {
      const std::vector<PackTable> tables{{{{elements, 0, 4}}, {}, 1}};
      std::vector<int> taken(elements);
      for (const Round& round : rounds_of(plan, messages, tables, room(bytes))) {
        ASSERT_EQ(round.size(), 1U);
        for (const plan::PackMember& member : round.front().table.members) {
          EXPECT_EQ(member.input_offset, member.output_offset);
          for (std::size_t e = 0; e < member.elements; ++e) ++taken[member.input_offset + e];
        }
      }
      EXPECT_EQ(taken, std::vector<int>(elements, 1));
    }
  }
}

// A ring over two ranks of eight devices each: 30 messages cross, 210 stay in each rank.
TEST(Rounds, MessagesInsideARankNeedNoOutbox) {
  Plan plan = plan::sample::ring(16, types_of(ReduceOp::kSum, DType::kFloat32));
  PackTable table;
  table.members.push_back({1000, 0, 16});
  const std::vector<PackTable> tables{table};
  for (std::size_t d = 0; d < plan.device_rank.size(); ++d) plan.device_rank[d] = d < 8 ? 0 : 1;
  EXPECT_EQ(rounds_of(plan, messages_of(plan), tables, room(16384, 30)).size(), 1U);
  EXPECT_GT(rounds_of(plan, messages_of(plan), tables, room(8192, 30)).size(), 1U);
}

TEST(Rounds, RefuseWhatCannotFit) {
  const Plan plan = plan::sample::ring(5, types_of(ReduceOp::kSum, DType::kFloat32));
  const std::vector<PackTable> tables{{{{100, 0, 5}}, {}, 1}};
  for (const engine::Limits& limits : {room(64), room(4096, 3)}) {
    expect_error([&] { rounds_of(plan, messages_of(plan), tables, limits); }, ErrorCode::kUnimplemented,
                 {"ring", "pack 0", "no room", "fewer shards"});
  }
}

// A function's pack that has no room in a round goes to it in parts, and from it.
class Chain final : public FunctionCaller {
 public:
  explicit Chain(std::vector<std::size_t> elements) {
    for (const std::size_t count : elements) results_.emplace_back(count);
  }
  std::byte* call(const Arguments& arguments) override {
    ++calls;
    std::vector<float>& result = results_[arguments.pack];
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = 0;
      for (const std::byte* source : arguments.sources) {
        float x = 0;
        std::memcpy(&x, source + i * sizeof x, sizeof x);
        result[i] = result[i] * 3 + x;
      }
    }
    return reinterpret_cast<std::byte*>(result.data());
  }
  int calls = 0;

 private:
  std::vector<std::vector<float>> results_;
};

void chained(const plan::SimulatedCall& call) {
  for (std::size_t at = 0; at < call.result.size(); at += sizeof(float)) {
    float sum = 0;
    for (const auto& source : call.sources) {
      float x = 0;
      std::memcpy(&x, source.data() + at, sizeof x);
      sum = sum * 3 + x;
    }
    std::memcpy(call.result.data() + at, &sum, sizeof sum);
  }
}

TEST(Rounds, FunctionsWithLittleRoom) {
  // Three workers with two, one and two devices.
  const collective::Topology topology{{0, 0, 1, 2, 2}, {}};
  for (const bool in_place : {false, true}) {
    collective::Task task;
    task.replicas.assign(5, {});
    for (std::int32_t d = 0; d < 5; ++d) {
      task.replicas[static_cast<std::size_t>(d)].device = d;
      task.destinations.push_back({d, in_place ? d : -1});
    }
    for (const std::int32_t on : {0, 2, 4}) {
      const Plan one = collective::one_device(topology, task, on, collective::Accumulation::kFunction);
      ASSERT_NO_THROW(plan::verify(one));
      const std::vector<Plan> parts(4, one);
      const Plan plan = plan::side_by_side(parts);
      const std::vector<std::size_t> elements{3, 3001, 0, 1777};
      std::vector<PackSize> sizes;
      for (const std::size_t count : elements) sizes.push_back({{count}, {}, 1});
      for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{4096}, std::size_t{2048}}) {
        SCOPED_TRACE(std::to_string(on) + " with room for " + std::to_string(bytes));
        Harness harness(plan, sizes, engine(), 1, room(bytes));
        EXPECT_EQ(harness.program().rounds.size() > 1, bytes < 10000);
        Chain caller(elements);
        plan::SimulateOptions options;
        options.call = chained;
        for (std::uint64_t run = 1; run < 3; ++run) {
          harness.fill(run);
          harness.run(Executor::Deadline::max(), &caller);
          harness.expect_as_simulated(options);
        }
        EXPECT_EQ(caller.calls, 8);
      }
    }
  }
}

}  // namespace
}  // namespace onesum::exec
