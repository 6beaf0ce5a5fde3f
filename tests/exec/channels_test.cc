// Plans of several workers that live in one process: messages of every size and type, views read in parts and
// in other lanes, rows, and what happens when a run ends in the middle.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/host/host_engine.h"
#include "exec/bind.h"
#include "harness.h"
#include "plan/builder.h"
#include "plan/compose.h"
#include "plan/sample_plans.h"
#include "plan/verify.h"
#include "support/expect_error.h"

namespace onesum::exec {
namespace {

using plan::Builder;
using plan::Chunks;
using plan::Operand;
using plan::Plan;
using plan::SplitRule;
using plan::sample::Types;
using plan::sample::types_of;
using testing::expect_error;

// The host engine, with segments so small that short vectors have several, and memory that ends where it
// ends, so that a sanitizer sees what goes beyond; it begins with garbage.
class PettyEngine final : public engine::ThreadedEngine {
 public:
  std::string_view device_type() const noexcept override { return host_->device_type(); }
  void* allocate(std::size_t bytes) override {
    void* const memory = ::operator new(bytes, std::align_val_t{64});
    std::memset(memory, 0xa5, bytes);
    return memory;
  }
  void release(void* memory, std::size_t) noexcept override {
    ::operator delete(memory, std::align_val_t{64});
  }
  engine::Kernel reduce_kernel(const engine::ReduceForm& form) const override {
    return host_->reduce_kernel(form);
  }
  bool prefers_streaming(std::size_t) const noexcept override { return true; }
  void run_segments(std::uint32_t count, engine::SegmentTask task, void* context) noexcept override {
    host_->run_segments(count, task, context);
  }
  std::size_t segment_bytes() const noexcept override { return 2048; }
  unsigned threads() const noexcept override { return host_->threads(); }
  std::string description() const override { return "petty"; }

 private:
  std::unique_ptr<engine::ThreadedEngine> host_ =
      engine::make_host_engine({.threads = 2, .pool_limit_bytes = {}});
};

engine::ThreadedEngine& engine() {
  static PettyEngine petty;
  return petty;
}

// The same plan with its lanes in another order, which is another interleaving.
Plan with_lanes_in_order(const Plan& plan, const std::vector<std::int32_t>& order) {
  std::vector<std::int32_t> new_number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    new_number[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  Plan other = plan;
  for (std::size_t i = 0; i < order.size(); ++i) {
    other.lanes[i] = plan.lane(order[i]);
    for (plan::Step& step : other.lanes[i].steps) {
      if (step.op == plan::Op::kWait) step.lane = new_number[static_cast<std::size_t>(step.lane)];
    }
  }
  plan::lay_out_operands(other);
  return other;
}

std::vector<std::int32_t> lane_numbers(const Plan& plan) {
  std::vector<std::int32_t> numbers(plan.lanes.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Plan shuffled(const Plan& plan, std::uint64_t seed) {
  std::vector<std::int32_t> order = lane_numbers(plan);
  std::ranges::shuffle(order, std::mt19937_64(seed));
  return with_lanes_in_order(plan, order);
}

void run_and_expect(const Plan& plan, const PackSize& size) {
  Harness harness(plan, {size}, engine());
  harness.run();
  harness.expect_as_simulated();
}

// Every plan that sums replicas of these types over n workers.
std::vector<Plan> sums(std::int32_t n, const Types& types) {
  const bool can_be_in_place = types.input == types.output;
  std::vector<Plan> plans{plan::sample::direct(n, types)};
  if (n > 1) plans.push_back(plan::sample::ring(n, types));
  if (n > 1 && can_be_in_place) plans.push_back(plan::sample::direct_in_lanes(n, types));
  if (n > 1 && can_be_in_place) plans.push_back(plan::sample::direct(n, types, true));
  if (n > 1 && std::has_single_bit(static_cast<std::uint32_t>(n))) {
    plans.push_back(plan::sample::halving_doubling(n, types));
    if (can_be_in_place) plans.push_back(plan::sample::halving_doubling(n, types, true));
  }
  return plans;
}

void check_sums(std::int32_t n, const Types& types) {
  const auto workers = static_cast<std::size_t>(n);
  std::uint64_t seed = 1;
  for (const Plan& plan : sums(n, types)) {
    SCOPED_TRACE(plan.algorithm + " over " + std::to_string(n) + " workers of " +
                 std::string(to_string(types.input)));
    ASSERT_NO_THROW(plan::verify(plan));
    const std::vector<std::size_t> packs[] = {
        {0},           {1},       {2},           {13},         {97},
        {workers - 1}, {workers}, {workers + 1}, {3, 1, 0, 7}, {700, 1, 1, 1501, 33},
        {3001}};
    for (const std::vector<std::size_t>& members : packs)
      run_and_expect(shuffled(plan, seed++), {members, {}, 1});
  }
}

TEST(Channels, SumsOfEveryNumberOfWorkers) {
  for (std::int32_t n = 1; n <= 9; ++n) {
    check_sums(n, types_of(ReduceOp::kSum, DType::kFloat32));
    check_sums(n, types_of(ReduceOp::kMean, DType::kFloat16));
  }
}

TEST(Channels, SumsOfEveryKindOfType) {
  for (const std::int32_t n : {2, 3, 4}) {
    check_sums(n, types_of(ReduceOp::kSum, DType::kBFloat16));
    check_sums(n, types_of(ReduceOp::kSum, DType::kInt32));
    check_sums(n, types_of(ReduceOp::kMean, DType::kInt8));
    check_sums(n, types_of(ReduceOp::kMean, DType::kUInt64));
    check_sums(n, types_of(ReduceOp::kMean, DType::kComplex64));
    check_sums(n, types_of(ReduceOp::kSum, DType::kFloat64));
  }
}

TEST(Channels, Broadcasts) {
  for (const Element element : {Element::kBool, Element::kBFloat16, Element::kComplex128}) {
    for (std::int32_t n = 1; n <= 9; ++n) {
      const Plan plan = plan::sample::chain_broadcast(n, element);
      ASSERT_NO_THROW(plan::verify(plan));
      for (const std::vector<std::size_t>& members :
           {std::vector<std::size_t>{0}, {1}, {2}, {3, 1, 0, 7, 1000, 5}}) {
        run_and_expect(shuffled(plan, static_cast<std::uint64_t>(n)), {members, {}, 1});
      }
    }
  }
}

TEST(Channels, GathersOfRows) {
  for (const Element element : {Element::kUInt8, Element::kBFloat16, Element::kFloat64}) {
    for (std::int32_t n = 2; n <= 9; ++n) {
      const Plan plan = plan::sample::ring_gather(n, element);
      ASSERT_NO_THROW(plan::verify(plan));
      for (const std::size_t longest : {0U, 1U, 3U, 400U}) {
        std::vector<std::size_t> counts;
        for (std::int32_t r = 0; r < n; ++r)
          counts.push_back(static_cast<std::size_t>(r) * 7 % (longest + 1));
        for (const std::size_t outer : {1U, 2U, 9U}) {
          SCOPED_TRACE(std::to_string(n) + " workers, " + std::to_string(outer) + " rows");
          run_and_expect(shuffled(plan, outer), {{}, counts, outer});
        }
      }
    }
  }
}

// Two replicas of one worker go to another as one message, which is read in parts: the second replica's, the
// first one's, and both.
TEST(Channels, RowsOfSeveralChunksInOneMessage) {
  Builder builder("by_hand", {0, 0, 1, 1});
  plan::Pack value;
  value.contract = plan::Contract::kConcatenate;
  value.split = {{SplitRule::kCounts, 2}};
  value.replicas = {0, 1};
  value.destinations = {2, 3};
  builder.add_pack(value);
  const std::int32_t channel = builder.add_channel({0, 2, 0});
  const std::int32_t slot = builder.slot(0, channel, Element::kFloat32);
  const std::int32_t view = builder.view(0, channel, Element::kFloat32);
  const std::int32_t temp = builder.temp(0, 0, Element::kFloat32, {0, 2});
  const std::int32_t sender = builder.add_lane(0);
  const std::int32_t receiver = builder.add_lane(1);
  builder.counts(sender, 0);
  builder.counts(receiver, 0);
  for (std::uint32_t r = 0; r < 2; ++r) {
    const std::int32_t in = builder.input(0, static_cast<std::int32_t>(r), Element::kFloat32);
    builder.copy(sender, 0, {{Operand{temp, {r, 1}}}}, {in, {r, 1}});
  }
  builder.copy(sender, 0, {{Operand{slot, {0, 2}}}}, {temp, {0, 2}});
  const std::int32_t outputs[] = {builder.output(0, 0), builder.output(0, 1)};
  builder.recv(receiver, channel, {view, {0, 2}});
  builder.copy(receiver, 2, {{Operand{outputs[0], {1, 1}}}}, {view, {1, 1}});
  builder.copy(receiver, 2, {{Operand{outputs[0], {0, 1}}}}, {view, {0, 1}});
  builder.copy(receiver, 2, {{Operand{outputs[1], {0, 2}}}}, {view, {0, 2}});
  builder.release(receiver, channel);
  const Plan plan = std::move(builder).take();
  ASSERT_NO_THROW(plan::verify(plan));
  for (const std::vector<std::size_t>& counts : {std::vector<std::size_t>{3, 5}, {0, 4}, {4, 0}, {700, 1}}) {
    for (const std::size_t outer : {1U, 2U, 31U}) run_and_expect(plan, {{}, counts, outer});
  }
}

// One channel carries messages of several lengths; the longest is read chunk by chunk, out of order, and the
// last one is received by another lane than the ones before.
TEST(Channels, ViewsInPartsAndInOtherLanes) {
  Builder builder("by_hand", {0, 1});
  plan::Pack value;
  value.split = {{SplitRule::kRagged, 5}};
  value.replicas = {0};
  value.destinations = {1};
  builder.add_pack(value);
  const std::int32_t in = builder.input(0, 0, Element::kFloat32);
  const std::int32_t out = builder.output(0, 0);
  const std::int32_t channel = builder.add_channel({0, 1, 0});
  const std::int32_t slot = builder.slot(0, channel, Element::kFloat32);
  const std::int32_t view = builder.view(0, channel, Element::kFloat32);
  const std::int32_t sender = builder.add_lane(0);
  for (const Chunks chunks : {Chunks{4, 1}, Chunks{1, 3}, Chunks{0, 1}}) {
    builder.copy(sender, 0, {{Operand{slot, chunks}}}, {in, chunks});
  }
  const std::int32_t first = builder.add_lane(1);
  const std::int32_t second = builder.add_lane(1);
  const auto take = [&](std::int32_t lane, std::uint32_t chunk) {
    return builder.copy(lane, 1, {{Operand{out, {chunk, 1}}}}, {view, {chunk, 1}});
  };
  builder.recv(first, channel, {view, {4, 1}});
  take(first, 4);
  builder.release(first, channel);
  const std::int32_t received = builder.recv(first, channel, {view, {1, 3}});
  take(first, 3);
  const std::int32_t took_one = take(first, 1);
  builder.wait(second, first, received);
  take(second, 2);
  builder.wait(second, first, took_one);
  builder.release(second, channel);
  const std::int32_t received_last = builder.recv(second, channel, {view, {0, 1}});
  builder.wait(first, second, received_last);
  const std::int32_t took_last = take(first, 0);
  builder.wait(second, first, took_last);
  builder.release(second, channel);
  const Plan plan = std::move(builder).take();
  ASSERT_NO_THROW(plan::verify(plan));
  for (const std::vector<std::size_t>& members :
       {std::vector<std::size_t>{0}, {4}, {5}, {11}, {3, 1, 0, 7, 64}, {1000, 1, 2000}}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) run_and_expect(shuffled(plan, seed), {members, {}, 1});
  }
}

TEST(Channels, PacksOfABatch) {
  const Plan parts[] = {plan::sample::ring(3, types_of(ReduceOp::kMean, DType::kBFloat16)),
                        plan::sample::direct(3, types_of(ReduceOp::kSum, DType::kFloat32))};
  const std::vector<PackSize> sizes{{{100, 7}, {}, 1}, {{1, 2, 3, 0, 5000}, {}, 1}};
  Harness(plan::in_sequence(parts), sizes, engine()).run_and_expect_as_simulated();
}

TEST(Channels, ChainsOfManyLanesInTheWorstOrder) {
  const Plan plan = plan::sample::chain_broadcast(300, Element::kFloat32);
  std::vector<std::int32_t> order = lane_numbers(plan);
  std::ranges::reverse(order);
  run_and_expect(with_lanes_in_order(plan, order), {{5, 2}, {}, 1});
}

TEST(Channels, NothingThatIsSentBypassesTheCaches) {
  const Harness harness(plan::sample::ring(3, types_of(ReduceOp::kSum, DType::kFloat32)), {{{5000}, {}, 1}},
                        engine());
  std::size_t streaming = 0;
  for (const BoundStep& step : harness.program().steps) {
    streaming += step.form.streaming ? 1 : 0;
    EXPECT_FALSE(step.form.streaming && step.num_sends > 0);
  }
  EXPECT_EQ(streaming, 3U);  // each worker's last copy
}

TEST(Channels, ManyRunsOfOneInstanceAlsoAfterDeadlines) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  for (const std::vector<std::size_t>& members : {std::vector<std::size_t>{5}, {4001, 3}}) {
    for (const Plan& plan : sums(4, types_of(ReduceOp::kSum, DType::kFloat32))) {
      SCOPED_TRACE(plan.algorithm);
      Harness harness(plan, {{members, {}, 1}}, engine());
      for (std::uint64_t run = 1; run < 4; ++run) {
        expect_error([&] { harness.run(now()); }, ErrorCode::kDeadlineExceeded, {"timeout"});
        harness.fill(run);
        harness.run();
        harness.expect_as_simulated();
      }
    }
  }
}

TEST(Channels, ManySmallStepsLookAtTheClock) {
  Builder builder("by_hand", {0});
  plan::Pack value;
  value.replicas = value.destinations = {0};
  builder.add_pack(value);
  const Operand in = builder.whole(builder.input(0, 0, Element::kFloat32));
  const Operand out = builder.whole(builder.output(0, 0));
  const std::int32_t lane = builder.add_lane(0);
  for (int i = 0; i < 200; ++i) builder.copy(lane, 0, {{out}}, in);
  Harness harness(std::move(builder).take(), {{{1}, {}, 1}}, engine());
  expect_error([&] { harness.run(std::chrono::steady_clock::now()); }, ErrorCode::kDeadlineExceeded,
               {"timeout"});
  harness.run();
  harness.expect_as_simulated();
}

TEST(Channels, RoundsOverTheLanesLookAtTheClock) {
  const Plan plan = plan::sample::chain_broadcast(3, Element::kFloat32);
  Harness harness(with_lanes_in_order(plan, {2, 1, 0}), {{{2}, {}, 1}}, engine());
  expect_error([&] { harness.run(std::chrono::steady_clock::now()); }, ErrorCode::kDeadlineExceeded,
               {"timeout"});
  harness.run();
  harness.expect_as_simulated();
}

// A worker sends its replica to another, which calls the user's function with it and its own.
class Doubler final : public FunctionCaller {
 public:
  explicit Doubler(Harness& harness) : harness_(harness) {}
  std::byte* call(const Arguments&) override {
    if (fails) throw std::out_of_range("mine");
    std::memcpy(&result_, harness_.slot(first_input), sizeof result_);
    result_ *= 2;
    return reinterpret_cast<std::byte*>(&result_);
  }
  static constexpr std::size_t first_input = 3;  // after a gap and two results
  bool fails = false;

 private:
  Harness& harness_;
  float result_ = 0;
};

TEST(Channels, FunctionsOfViews) {
  Builder builder("by_hand", {0, 1});
  builder.add_pack(plan::sample::pack_of(2, {}));
  builder.claim_order("accumulation_fn");
  const std::int32_t there = builder.add_channel({0, 1, 0});
  const std::int32_t back = builder.add_channel({1, 0, 0});
  const Operand inputs[] = {builder.whole(builder.input(0, 0, Element::kFloat32)),
                            builder.whole(builder.input(0, 1, Element::kFloat32))};
  const Operand outputs[] = {builder.whole(builder.output(0, 0)), builder.whole(builder.output(0, 1))};
  const Operand temp = builder.whole(builder.temp(0, 1, Element::kFloat32, {0, 1}));
  const Operand view_there = builder.whole(builder.view(0, there, Element::kFloat32));
  const Operand view_back = builder.whole(builder.view(0, back, Element::kFloat32));
  const std::int32_t one = builder.add_lane(0);
  const std::int32_t other = builder.add_lane(1);
  builder.copy(one, 0, {{builder.whole(builder.slot(0, there, Element::kFloat32))}}, inputs[0]);
  builder.recv(one, back, view_back);
  builder.copy(one, 0, {{outputs[0]}}, view_back);
  builder.release(one, back);
  builder.recv(other, there, view_there);
  builder.call(other, 1, temp, {{view_there, inputs[1]}}, Element::kFloat32);
  builder.release(other, there);
  builder.copy(other, 1, {{outputs[1], builder.whole(builder.slot(0, back, Element::kFloat32))}}, temp);
  const Plan plan = std::move(builder).take();
  ASSERT_NO_THROW(plan::verify(plan));
  Harness harness(plan, {{{1}, {}, 1}}, engine());
  Doubler caller(harness);
  plan::SimulateOptions options;
  options.call = [](const plan::SimulatedCall& call) {
    float x = 0;
    std::memcpy(&x, call.sources.front().data(), sizeof x);
    x *= 2;
    std::memcpy(call.result.data(), &x, sizeof x);
  };
  for (std::uint64_t run = 1; run < 4; ++run) {
    caller.fails = true;
    EXPECT_THROW(harness.run(Executor::Deadline::max(), &caller), std::out_of_range);
    caller.fails = false;
    harness.fill(run);
    harness.run(Executor::Deadline::max(), &caller);
    harness.expect_as_simulated(options);
  }
}

// A plan over one channel from worker 0 to worker 1 that nobody verified.
class Unverified {
 public:
  Unverified() : builder_("by_hand", {0, 1}) {
    plan::Pack value;
    value.replicas = {0};
    value.destinations = {1};
    builder_.add_pack(value);
    channel_ = builder_.add_channel({0, 1, 0});
    in_ = builder_.whole(builder_.input(0, 0, Element::kFloat32));
    slot_ = builder_.whole(builder_.slot(0, channel_, Element::kFloat32));
    view_ = builder_.whole(builder_.view(0, channel_, Element::kFloat32));
    for (const std::int32_t rank : {0, 1}) builder_.add_lane(rank);
  }
  Unverified& send() {
    builder_.copy(0, 0, {{slot_}}, in_);
    return *this;
  }
  Unverified& recv() {
    builder_.recv(1, channel_, view_);
    return *this;
  }
  Unverified& wait(std::int32_t lane, std::int32_t other, std::int32_t step) {
    builder_.wait(lane, other, step);
    return *this;
  }

  void expect_stuck(std::initializer_list<std::string_view> parts) {
    const std::vector<plan::PackTable> tables{{{{1, 0, 1}}, {}, 1}};
    const auto bind_and_run = [&] {
      Instance instance(exec::bind(std::move(builder_).take(), tables, 2, {engine()}));
      float memory[2] = {};
      for (std::size_t i = 0; i < 2; ++i) instance.bases()[i] = reinterpret_cast<std::byte*>(memory + i);
      instance.bases_changed();
      Executor::run(instance, Executor::Deadline::max());
    };
    expect_error(bind_and_run, ErrorCode::kInternal, parts);
  }

 private:
  Builder builder_;
  std::int32_t channel_ = 0;
  Operand in_, slot_, view_;
};

TEST(Channels, PlansThatCannotGoOnSayWhere) {
  Unverified().recv().expect_stuck({"step 0", "not sent"});
  Unverified().send().recv().recv().expect_stuck({"step 1", "not sent"});
  Unverified().wait(0, 1, 0).send().recv().expect_stuck({"lane 0 waits at step 0", "for 1 steps of lane 1"});
  Unverified().wait(0, 1, 0).wait(1, 0, 0).expect_stuck(
      {"lane 0 waits at step 0", "for 1 steps of lane 1", "wait: 2"});
}

}  // namespace
}  // namespace onesum::exec
