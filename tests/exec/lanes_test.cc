// Plans written by hand: several lanes that wait for each other, temporaries, chunks whose borders lie inside
// tensors.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "collective/one_device.h"
#include "engine/host/host_engine.h"
#include "harness.h"
#include "plan/builder.h"
#include "plan/compose.h"

namespace onesum::exec {
namespace {

using plan::Builder;
using plan::Chunks;
using plan::Operand;
using plan::Split;
using plan::SplitRule;

engine::ThreadedEngine& engine() {
  static const std::unique_ptr<engine::ThreadedEngine> host =
      engine::make_host_engine({.threads = 3, .pool_limit_bytes = {}});
  return *host;
}

plan::Pack pack_of(std::size_t replicas, std::size_t destinations, const Split& split,
                   Element accumulator = Element::kFloat32, Element output = Element::kFloat32,
                   std::int64_t divisor = 1) {
  plan::Pack pack;
  pack.accumulator = accumulator;
  pack.output = output;
  pack.divisor = divisor;
  pack.split = split;
  for (std::size_t i = 0; i < replicas; ++i) pack.replicas.push_back(static_cast<std::int32_t>(i));
  for (std::size_t i = 0; i < destinations; ++i) pack.destinations.push_back(static_cast<std::int32_t>(i));
  return pack;
}

// Every chunk is summed by a lane of its own into a temporary just large enough, and copied out by the lane
// of the next chunk, which waits for it.
plan::Plan chunk_by_chunk(std::size_t replicas, const Split& split, Element input, Element accumulator,
                          Element output, std::int64_t divisor) {
  Builder builder("by_hand", std::vector<std::int32_t>(replicas, 0));
  const std::int32_t pack =
      builder.add_pack(pack_of(replicas, replicas, split, accumulator, output, divisor));
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> outputs;
  for (std::size_t r = 0; r < replicas; ++r) {
    inputs.push_back(builder.input(pack, static_cast<std::int32_t>(r), input));
    outputs.push_back(builder.output(pack, static_cast<std::int32_t>(r)));
  }
  const std::uint32_t chunks = builder.all_chunks(pack).count;
  const std::vector<std::uint8_t> merges = plan::canonical_merges(replicas);
  std::vector<std::int32_t> lanes;
  std::vector<std::int32_t> temps;
  for (std::uint32_t c = 0; c < chunks; ++c) {
    lanes.push_back(builder.add_lane(0));
    temps.push_back(builder.temp(pack, 0, output, Chunks{c, 1}));
  }
  for (std::uint32_t c = 0; c < chunks; ++c) {
    const std::uint32_t other = (c + chunks - 1) % chunks;
    std::vector<Operand> sources;
    for (std::size_t r = 0; r < replicas; ++r) sources.push_back({inputs[r], {c, 1}, merges[r]});
    const Operand temp{temps[c], {c, 1}};
    builder.reduce(lanes[c], 0, std::span(&temp, 1), sources, accumulator, divisor);
    if (chunks > 1) builder.wait(lanes[c], lanes[other], 0);
    std::vector<Operand> destinations;
    for (const std::int32_t out : outputs) destinations.push_back({out, {other, 1}});
    builder.copy(lanes[c], 0, destinations, {temps[other], {other, 1}});
  }
  return std::move(builder).take();
}

const Split kSplits[] = {{},
                         {{SplitRule::kRagged, 2}},
                         {{SplitRule::kPadded, 2}},
                         {{SplitRule::kRagged, 5}},
                         {{SplitRule::kPadded, 5}},
                         {{SplitRule::kRagged, 3}, {SplitRule::kPadded, 2}},
                         {{SplitRule::kPadded, 4}, {SplitRule::kRagged, 3}},
                         {{SplitRule::kPadded, 16}}};

const std::vector<std::size_t> kPacks[] = {
    {0}, {1}, {2}, {100}, {3, 1, 0, 7, 64}, {0, 0}, {1000, 1, 1, 1, 5000, 33}, {30001, 3, 20007}, {50000}};

TEST(Lanes, ChunkByChunkThroughTemporaries) {
  for (const Split& split : kSplits) {
    for (const std::vector<std::size_t>& members : kPacks) {
      for (const std::size_t n : {2U, 5U}) {
        SCOPED_TRACE(std::to_string(plan::num_chunks(split)) + " chunks of " +
                     std::to_string(members.size()) + " tensors");
        Harness(chunk_by_chunk(n, split, Element::kFloat32, Element::kFloat32, Element::kFloat32, 1),
                {{members, {}, 1}}, engine())
            .run_and_expect_as_simulated();
      }
    }
  }
}

TEST(Lanes, OtherTypesAndMeans) {
  struct Types {
    Element input, accumulator, output;
    std::int64_t divisor;
  };
  const Types all[] = {{Element::kFloat16, Element::kFloat32, Element::kFloat16, 1},
                       {Element::kBFloat16, Element::kFloat32, Element::kBFloat16, 3},
                       {Element::kInt8, Element::kInt64, Element::kFloat32, 3},
                       {Element::kUInt64, Element::kUInt128, Element::kFloat64, 3},
                       {Element::kComplex128, Element::kComplex128, Element::kComplex128, 3},
                       {Element::kUInt16, Element::kUInt16, Element::kUInt16, 1}};
  for (const Types& types : all) {
    Harness(chunk_by_chunk(3, {{SplitRule::kPadded, 7}}, types.input, types.accumulator, types.output,
                           types.divisor),
            {{{11, 1, 500, 3, 20000}, {}, 1}}, engine())
        .run_and_expect_as_simulated();
  }
}

TEST(Lanes, PartialSumsInTemporariesOfTheAccumulator) {
  for (const std::int64_t divisor : {std::int64_t{1}, std::int64_t{6}}) {
    Builder builder("by_hand", std::vector<std::int32_t>(6, 0));
    const std::int32_t pack = builder.add_pack(
        pack_of(6, 2, {{SplitRule::kRagged, 3}}, Element::kFloat32, Element::kFloat16, divisor));
    std::vector<std::int32_t> inputs;
    for (std::int32_t r = 0; r < 6; ++r) inputs.push_back(builder.input(pack, r, Element::kFloat16));
    const std::int32_t outputs[] = {builder.output(pack, 0), builder.output(pack, 1)};
    const Chunks all = builder.all_chunks(pack);
    std::vector<Operand> partials;
    const std::vector<std::uint8_t> merges = plan::canonical_merges(std::vector<std::uint32_t>{2, 2, 2});
    for (std::size_t pair = 0; pair < 3; ++pair) {
      const std::int32_t lane = builder.add_lane(0);
      const std::int32_t temp = builder.temp(pack, static_cast<std::int32_t>(pair), Element::kFloat32, all);
      const Operand sources[] = {{inputs[2 * pair], all, 0}, {inputs[2 * pair + 1], all, 1}};
      const Operand destination{temp, all};
      builder.reduce(lane, 0, std::span(&destination, 1), sources, Element::kFloat32);
      partials.push_back({temp, all, merges[pair]});
    }
    const std::int32_t last = builder.add_lane(0);
    for (std::int32_t lane = 0; lane < 3; ++lane) builder.wait(last, lane, 0);
    const Operand destinations[] = {{outputs[0], all}, {outputs[1], all}};
    builder.reduce(last, 0, destinations, partials, Element::kFloat32, divisor);
    Harness(std::move(builder).take(), {{{5, 700, 30011}, {}, 1}}, engine()).run_and_expect_as_simulated();
  }
}

// Types are mixed inside one reduce: raw replicas beside a partial sum, in any order and also in place.
TEST(Lanes, RawReplicasBesidePartialSums) {
  struct Types {
    Element input, accumulator, output;
    std::int64_t divisor;
  };
  const Types all[] = {{Element::kFloat16, Element::kFloat32, Element::kFloat16, 1},
                       {Element::kBFloat16, Element::kFloat32, Element::kBFloat16, 5},
                       {Element::kUInt8, Element::kUInt64, Element::kFloat32, 5},
                       {Element::kInt64, Element::kInt128, Element::kFloat64, 5}};
  for (const Types& types : all) {
    for (const bool in_place : {false, true}) {
      if (in_place && types.input != types.output) continue;
      Builder builder("by_hand", std::vector<std::int32_t>(5, 0));
      const std::int32_t pack = builder.add_pack(
          pack_of(5, 2, {{SplitRule::kPadded, 2}}, types.accumulator, types.output, types.divisor));
      std::vector<std::int32_t> inputs;
      for (std::int32_t r = 0; r < 5; ++r) {
        inputs.push_back(in_place && r < 2 ? builder.inout(pack, r, types.input)
                                           : builder.input(pack, r, types.input));
      }
      const std::int32_t outputs[] = {in_place ? inputs[0] : builder.output(pack, 0),
                                      in_place ? inputs[1] : builder.output(pack, 1)};
      const Chunks chunks = builder.all_chunks(pack);
      const std::int32_t lane = builder.add_lane(0);
      const std::int32_t partial = builder.temp(pack, 0, types.accumulator, chunks);
      const Operand middle[] = {{inputs[2], chunks, 0}, {inputs[3], chunks, 1}};
      const Operand sum{partial, chunks};
      builder.reduce(lane, 0, std::span(&sum, 1), middle, types.accumulator);
      const std::vector<std::uint8_t> merges = plan::canonical_merges(std::vector<std::uint32_t>{1, 1, 2, 1});
      const Operand sources[] = {{inputs[0], chunks, merges[0]},
                                 {inputs[1], chunks, merges[1]},
                                 {partial, chunks, merges[2]},
                                 {inputs[4], chunks, merges[3]}};
      const Operand destinations[] = {{outputs[0], chunks}, {outputs[1], chunks}};
      builder.reduce(lane, 0, destinations, sources, types.accumulator, types.divisor);
      Harness(std::move(builder).take(), {{{5, 700, 30011}, {}, 1}}, engine()).run_and_expect_as_simulated();
    }
  }
}

// Lane c owns chunk c: it sums all replicas' chunk into its own, the others take it from there.
TEST(Lanes, ReduceScatterAndAllGatherInPlace) {
  constexpr std::int32_t kDevices = 4;
  Builder builder("by_hand", std::vector<std::int32_t>(kDevices, 0));
  const std::int32_t pack = builder.add_pack(pack_of(kDevices, kDevices, {{SplitRule::kPadded, kDevices}}));
  std::vector<std::int32_t> buffers;
  for (std::int32_t r = 0; r < kDevices; ++r) buffers.push_back(builder.inout(pack, r, Element::kFloat32));
  const std::vector<std::uint8_t> merges = plan::canonical_merges(kDevices);
  for (std::int32_t c = 0; c < kDevices; ++c) {
    const Chunks chunk{static_cast<std::uint32_t>(c), 1};
    const std::int32_t lane = builder.add_lane(0);
    std::vector<Operand> sources;
    std::vector<Operand> others;
    for (std::int32_t r = 0; r < kDevices; ++r) {
      sources.push_back({buffers[static_cast<std::size_t>(r)], chunk, merges[static_cast<std::size_t>(r)]});
      if (r != c) others.push_back({buffers[static_cast<std::size_t>(r)], chunk});
    }
    const Operand own{buffers[static_cast<std::size_t>(c)], chunk};
    builder.reduce(lane, c, std::span(&own, 1), sources, Element::kFloat32);
    builder.copy(lane, c, others, own);
  }
  const plan::Plan plan = std::move(builder).take();
  for (const std::vector<std::size_t>& members : kPacks)
    Harness(plan, {{members, {}, 1}}, engine()).run_and_expect_as_simulated();
}

TEST(Lanes, RunsOfSeveralChunks) {
  Builder builder("by_hand", {0, 0});
  const std::int32_t pack = builder.add_pack(pack_of(2, 1, {{SplitRule::kRagged, 6}}));
  const std::int32_t inputs[] = {builder.input(pack, 0, Element::kFloat32),
                                 builder.input(pack, 1, Element::kFloat32)};
  const std::int32_t out = builder.output(pack, 0);
  const std::int32_t temp = builder.temp(pack, 1, Element::kFloat32, {2, 3});
  const std::int32_t lane = builder.add_lane(0);
  const auto sum = [&](std::int32_t to, Chunks chunks) {
    const Operand sources[] = {{inputs[0], chunks, 0}, {inputs[1], chunks, 1}};
    const Operand destination{to, chunks};
    builder.reduce(lane, 0, std::span(&destination, 1), sources, Element::kFloat32);
  };
  sum(out, {0, 2});
  sum(temp, {2, 1});
  sum(temp, {3, 2});
  sum(out, {5, 1});
  const Operand destination{out, {2, 3}};
  builder.copy(lane, 0, std::span(&destination, 1), {temp, {2, 3}});
  const plan::Plan plan = std::move(builder).take();
  for (const std::vector<std::size_t>& members : kPacks)
    Harness(plan, {{members, {}, 1}}, engine()).run_and_expect_as_simulated();
}

// Packs of a batch, side by side in lanes of their own, and one after the other.
TEST(Lanes, ComposedPlans) {
  const plan::Plan parts[] = {chunk_by_chunk(3, {{SplitRule::kRagged, 2}}, Element::kFloat32,
                                             Element::kFloat32, Element::kFloat32, 1),
                              chunk_by_chunk(3, {}, Element::kInt32, Element::kInt32, Element::kInt32, 1),
                              chunk_by_chunk(3, {{SplitRule::kPadded, 3}}, Element::kFloat16,
                                             Element::kFloat32, Element::kFloat16, 3)};
  const std::vector<PackSize> sizes{{{100, 7}, {}, 1}, {{40000}, {}, 1}, {{1, 2, 3, 0, 5}, {}, 1}};
  for (const plan::LaneUse use : {plan::LaneUse::kShared, plan::LaneUse::kSeparate}) {
    Harness(plan::side_by_side(parts, use), sizes, engine()).run_and_expect_as_simulated();
  }
  Harness(plan::in_sequence(parts), sizes, engine()).run_and_expect_as_simulated();
}

TEST(Lanes, ManyRunsOfOneInstance) {
  Harness harness(chunk_by_chunk(4, {{SplitRule::kRagged, 4}}, Element::kFloat32, Element::kFloat32,
                                 Element::kFloat32, 4),
                  {{{50000, 17}, {}, 1}}, engine());
  for (std::uint64_t run = 0; run < 5; ++run) {
    harness.fill(run);
    harness.run_and_expect_as_simulated();
  }
}

}  // namespace
}  // namespace onesum::exec
