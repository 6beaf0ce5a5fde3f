// What the executor refuses, when it gives up, and how a user's function takes part.
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "collective/one_device.h"
#include "engine/host/host_engine.h"
#include "exec/bind.h"
#include "harness.h"
#include "plan/builder.h"
#include "support/expect_error.h"

namespace onesum::exec {
namespace {

using plan::Builder;
using plan::Operand;
using testing::expect_error;

engine::ThreadedEngine& engine() {
  static const std::unique_ptr<engine::ThreadedEngine> host =
      engine::make_host_engine({.threads = 2, .pool_limit_bytes = {}});
  return *host;
}

collective::Task sum_task(std::size_t replicas) {
  collective::Task task;
  for (std::size_t r = 0; r < replicas; ++r) {
    task.replicas.push_back({static_cast<std::int32_t>(r), Element::kFloat32});
    task.destinations.push_back({static_cast<std::int32_t>(r), -1});
  }
  return task;
}

TEST(Executor, GivesUpAtItsDeadlineAndRunsAgainAfterwards) {
  Harness harness(collective::one_device({{0, 0}, {}}, sum_task(2), 0), {{{500000}, {}, 1}}, engine());
  expect_error([&] { harness.run(std::chrono::steady_clock::now()); }, ErrorCode::kDeadlineExceeded,
               {"timeout", "incomplete"});
  harness.fill(3);
  harness.run_and_expect_as_simulated();
}

// Copies its first source, times three.
class Tripler final : public FunctionCaller {
 public:
  Tripler(Harness& harness, std::size_t first_input, std::size_t elements)
      : harness_(harness), first_input_(first_input), result_(elements) {}
  std::byte* call(const Arguments& arguments) override {
    ++calls;
    packs.push_back(arguments.pack);
    EXPECT_EQ(arguments.sources.front(), harness_.slot(first_input_));
    if (fails) throw std::out_of_range("mine");
    std::memcpy(result_.data(), harness_.slot(first_input_), result_.size() * sizeof(float));
    for (float& x : result_) x *= 3;
    return reinterpret_cast<std::byte*>(result_.data());
  }

  bool fails = false;
  int calls = 0;
  std::vector<std::uint32_t> packs;

 private:
  Harness& harness_;
  std::size_t first_input_;
  std::vector<float> result_;
};

void tripled(const plan::SimulatedCall& call) {
  std::memcpy(call.result.data(), call.sources.front().data(), call.result.size());
  for (std::size_t i = 0; i < call.result.size() / sizeof(float); ++i) {
    float x = 0;
    std::memcpy(&x, call.result.data() + i * sizeof(float), sizeof(float));
    x *= 3;
    std::memcpy(call.result.data() + i * sizeof(float), &x, sizeof(float));
  }
}

TEST(Executor, AsksTheFunctionOncePerCallStep) {
  const plan::Plan plan =
      collective::one_device({{0, 0}, {}}, sum_task(2), 0, collective::Accumulation::kFunction);
  Harness harness(plan, {{{1000}, {}, 1}}, engine());
  Tripler caller(harness, 3, 1000);  // after a gap and two results
  harness.run(Executor::Deadline::max(), &caller);
  plan::SimulateOptions options;
  options.call = tripled;
  harness.expect_as_simulated(options);
  EXPECT_EQ(caller.packs, std::vector<std::uint32_t>{0});
  caller.fails = true;
  EXPECT_THROW(harness.run(Executor::Deadline::max(), &caller), std::out_of_range);
  caller.fails = false;
  expect_error([&] { harness.run(std::chrono::steady_clock::now(), &caller); }, ErrorCode::kDeadlineExceeded,
               {"timeout"});
  harness.fill(9);
  harness.run(Executor::Deadline::max(), &caller);
  harness.expect_as_simulated(options);
  EXPECT_EQ(caller.calls, 4);
}

void expect_unbindable(const plan::Plan& plan, const plan::PackTable& table, std::string_view why) {
  const std::vector<plan::PackTable> tables{table};
  expect_error([&] { exec::bind(plan, tables, 10, {engine()}); }, ErrorCode::kInternal, {why});
}

plan::Pack simple_pack(std::size_t replicas) {
  plan::Pack pack;
  pack.replicas.assign(replicas, 0);
  pack.destinations = {0};
  return pack;
}

plan::PackTable table_of(std::size_t elements) {
  plan::PackTable table;
  table.members.push_back({elements, 0, 5});
  return table;
}

TEST(Bind, RefusesResultsOfSeveralTypes) {
  const auto mixed_destinations = [] {
    Builder builder("by_hand", {0});
    plan::Pack value = simple_pack(1);
    value.output = Element::kFloat16;
    const std::int32_t pack = builder.add_pack(value);
    const std::int32_t in = builder.input(pack, 0, Element::kFloat16);
    const std::int32_t temp = builder.temp(pack, 0, Element::kFloat32, builder.all_chunks(pack));
    const Operand destinations[] = {builder.whole(temp), builder.whole(builder.output(pack, 0))};
    const Operand source = builder.whole(in);
    builder.reduce(builder.add_lane(0), 0, destinations, std::span(&source, 1), Element::kFloat32);
    return std::move(builder).take();
  };
  expect_unbindable(mixed_destinations(), table_of(4), "mixes types");
}

TEST(Bind, RefusesCallsItCannotMake) {
  for (const bool divides : {false, true}) {
    Builder builder("by_hand", {0});
    const std::int32_t pack = builder.add_pack(simple_pack(1));
    const std::int32_t in = builder.input(pack, 0, Element::kFloat32);
    const std::int32_t result = divides ? builder.temp(pack, 0, Element::kFloat32, builder.all_chunks(pack))
                                        : builder.output(pack, 0);
    const Operand source = builder.whole(in);
    builder.call(builder.add_lane(0), 0, builder.whole(result), std::span(&source, 1), Element::kFloat32,
                 divides ? 2 : 1);
    expect_unbindable(std::move(builder).take(), table_of(4), "call");
  }
}

TEST(Bind, RefusesNativeCollectives) {
  Builder builder("nccl", {0, 0});
  plan::Pack pack;
  pack.replicas = pack.destinations = {0, 1};
  builder.add_pack(pack);
  const std::int32_t lane = builder.add_lane(0);
  const std::vector<Operand> sources = {builder.whole(builder.input(0, 0, Element::kFloat32)),
                                        builder.whole(builder.input(0, 1, Element::kFloat32))};
  const std::vector<Operand> results = {builder.whole(builder.output(0, 0)),
                                        builder.whole(builder.output(0, 1))};
  builder.native(lane, plan::Collective::kAllReduce, builder.add_group({1, 0}), results, sources);
  builder.claim_order("native");
  const plan::Plan plan = std::move(builder).take();
  expect_error([&] { Harness(plan, {{{10}, {}, 1}}, engine()); }, ErrorCode::kUnimplemented,
               {"native collective over 2 devices", "no engine"});
}

TEST(Bind, RefusesSumsOfRows) {
  Builder builder("by_hand", {0});
  plan::Pack value = simple_pack(1);
  value.contract = plan::Contract::kConcatenate;
  value.split = {{plan::SplitRule::kCounts, 1}};
  const std::int32_t pack = builder.add_pack(value);
  const std::int32_t in = builder.input(pack, 0, Element::kFloat32);
  const Operand sources[] = {{in, {0, 1}, 0}, {in, {0, 1}, 1}};
  const Operand destination = builder.whole(builder.output(pack, 0));
  builder.reduce(builder.add_lane(0), 0, std::span(&destination, 1), sources, Element::kFloat32);
  plan::PackTable table = table_of(4);
  table.counts = {4};
  table.outer = 2;
  expect_unbindable(std::move(builder).take(), table, "rows");
}

TEST(Bind, RefusesViewsOfNothing) {
  for (const bool received : {false, true}) {
    Builder builder("by_hand", {0, 1});
    plan::Pack value = simple_pack(1);
    value.split = {{plan::SplitRule::kRagged, 2}};
    value.destinations = {1};
    const std::int32_t pack = builder.add_pack(value);
    const std::int32_t channel = builder.add_channel({0, 1, 0});
    const std::int32_t view = builder.view(pack, channel, Element::kFloat32);
    const std::int32_t lane = builder.add_lane(1);
    if (received) builder.recv(lane, channel, {view, {0, 1}});
    const Operand destination{builder.output(pack, 0), {1, 1}};
    builder.copy(lane, 1, std::span(&destination, 1), {view, {1, 1}});
    expect_unbindable(std::move(builder).take(), table_of(4), "lane 0 step");
  }
}

// An engine that has no memory from the second block on must get the first one back.
class ForgetfulEngine final : public engine::ThreadedEngine {
 public:
  std::string_view device_type() const noexcept override { return exec::engine().device_type(); }
  void* allocate(std::size_t bytes) override {
    if (blocks_out == 1) throw Error(ErrorCode::kResourceExhausted, "no memory");
    ++blocks_out;
    return exec::engine().allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    --blocks_out;
    exec::engine().release(memory, bytes);
  }
  engine::Kernel reduce_kernel(const engine::ReduceForm& form) const override {
    return exec::engine().reduce_kernel(form);
  }
  bool prefers_streaming(std::size_t) const noexcept override { return false; }
  void run_segments(std::uint32_t count, engine::SegmentTask task, void* context) noexcept override {
    exec::engine().run_segments(count, task, context);
  }
  std::size_t segment_bytes() const noexcept override { return 4096; }
  unsigned threads() const noexcept override { return 1; }
  std::string description() const override { return "forgetful"; }

  int blocks_out = 0;
};

TEST(Instance, GivesTemporariesBackWhenThereIsNoMemoryForAllOfThem) {
  ForgetfulEngine forgetful;
  Builder builder("by_hand", {0});
  const std::int32_t pack = builder.add_pack(simple_pack(1));
  const std::int32_t in = builder.input(pack, 0, Element::kFloat32);
  const std::int32_t out = builder.output(pack, 0);
  const std::int32_t lane = builder.add_lane(0);
  std::int32_t from = in;
  for (int i = 0; i < 3; ++i) {
    const std::int32_t to = i == 2 ? out : builder.temp(pack, 0, Element::kFloat32, builder.all_chunks(pack));
    const Operand destination = builder.whole(to);
    builder.copy(lane, 0, std::span(&destination, 1), builder.whole(from));
    from = to;
  }
  const std::vector<plan::PackTable> tables{table_of(100)};
  const std::shared_ptr<const Program> program =
      exec::bind(std::move(builder).take(), tables, 10, {forgetful});
  std::vector<std::size_t> bytes;
  for (const Memory& memory : program->memory) bytes.push_back(memory.bytes);
  EXPECT_EQ(bytes, (std::vector<std::size_t>{400, 400, 0}));
  expect_error([&] { Instance instance(program); }, ErrorCode::kResourceExhausted, {"no memory"});
  EXPECT_EQ(forgetful.blocks_out, 0);
}

}  // namespace
}  // namespace onesum::exec
