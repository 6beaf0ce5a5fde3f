#include "plan/sample_plans.h"

#include <utility>

#include "plan/sample_parts.h"

namespace onesum::plan::sample {

Types types_of(ReduceOp op, DType input) {
  const Element element = element_of(input);
  return {element, accumulator_of(op, element), element_of(result_dtype(op, input)), op == ReduceOp::kMean};
}

Pack pack_of(std::int32_t n, const Types& types, Split split) {
  Pack pack;
  pack.accumulator = types.accumulator;
  pack.output = types.output;
  pack.divisor = divisor_of(n, types);
  pack.split = std::move(split);
  pack.replicas = worker_each(n);
  pack.destinations = worker_each(n);
  return pack;
}

Plan one_device(std::int32_t n, const Types& types, bool in_place) {
  Builder builder("one_device", one_worker(n));
  builder.add_pack(pack_of(n, types));
  const std::int32_t lane = builder.add_lane(0);
  const Ends ends(builder, n, types, in_place);
  std::vector<Operand> sources, destinations;
  const std::vector<std::uint8_t> merges = canonical_merges(at(n));
  for (std::int32_t i = 0; i < n; ++i) {
    sources.push_back(builder.whole(ends.in[at(i)]));
    sources.back().merges = merges[at(i)];
    destinations.push_back(builder.whole(ends.out[at(i)]));
  }
  builder.reduce(lane, 0, destinations, sources, types.accumulator, divisor_of(n, types));
  return std::move(builder).take();
}

Plan one_device_over_temp(std::int32_t n, const Types& types) {
  Builder builder("one_device", one_worker(n + 1));
  builder.add_pack(pack_of(n, types, ragged(2)));
  const std::int32_t lane = builder.add_lane(0);
  const Ends ends(builder, n, types, false);
  const std::vector<std::uint8_t> merges = canonical_merges(at(n));
  for (std::int32_t c = 0; c < 2; ++c) {
    const std::int32_t temp = builder.temp(0, n, types.accumulator, chunk(c));
    std::vector<Operand> sources, destinations;
    for (std::int32_t i = 0; i < n; ++i) {
      sources.push_back({ends.in[at(i)], chunk(c), merges[at(i)]});
      destinations.push_back({ends.out[at(i)], chunk(c), 0});
    }
    const Operand sum{temp, chunk(c), 0};
    builder.reduce(lane, n, std::span(&sum, 1), sources, types.accumulator);
    builder.reduce(lane, n, destinations, std::span(&sum, 1), types.accumulator, divisor_of(n, types));
  }
  return std::move(builder).take();
}

Plan two_lanes(const Types& types, bool first_finishes) {
  Builder builder("two_lanes", one_worker(4));
  builder.add_pack(pack_of(4, types));
  builder.add_lane(0);
  builder.add_lane(0);
  const std::int32_t left = first_finishes ? 0 : 1;
  const std::int32_t right = 1 - left;
  const Ends ends(builder, 4, types, true);
  const Operand low = builder.whole(builder.temp(0, 0, types.accumulator, builder.all_chunks(0)));
  const Operand high = builder.whole(builder.temp(0, 2, types.accumulator, builder.all_chunks(0)));
  const auto in = [&](std::int32_t i, std::uint8_t merges) {
    return Operand{ends.in[at(i)], {0, 1}, merges};
  };
  builder.reduce(left, 0, {{low}}, {{in(0, 0), in(1, 1)}}, types.accumulator);
  const std::int32_t done = builder.reduce(right, 2, {{high}}, {{in(2, 0), in(3, 1)}}, types.accumulator);
  builder.wait(left, right, done);
  const Operand second{high.buffer, high.chunks, 1};
  builder.reduce(left, 0, {{in(0, 0), in(1, 0), in(2, 0), in(3, 0)}}, {{low, second}}, types.accumulator,
                 divisor_of(4, types));
  return std::move(builder).take();
}

Plan user_function(std::int32_t n, const Types& types) {
  Builder builder("one_device", one_worker(n));
  builder.add_pack(pack_of(n, types));
  builder.claim_order("accumulation_fn");
  const std::int32_t lane = builder.add_lane(0);
  const Ends ends(builder, n, types, false);
  const Operand result = builder.whole(builder.temp(0, 0, types.input, builder.all_chunks(0)));
  std::vector<Operand> sources, destinations;
  for (std::int32_t i = 0; i < n; ++i) {
    sources.push_back(builder.whole(ends.in[at(i)]));
    destinations.push_back(builder.whole(ends.out[at(i)]));
  }
  builder.call(lane, 0, result, sources, types.input);
  builder.reduce(lane, 0, destinations, std::span(&result, 1), types.accumulator, divisor_of(n, types));
  return std::move(builder).take();
}

Plan chain_broadcast(std::int32_t n, Element element) {
  Builder builder("chain_broadcast", worker_each(n));
  Pack pack;
  pack.accumulator = pack.output = element;
  pack.split = {{SplitRule::kPadded, 2}};
  pack.replicas = {0};
  pack.destinations = worker_each(n);
  builder.add_pack(pack);
  const std::int32_t in = builder.input(0, 0, element);
  std::vector<Link> links;
  for (std::int32_t r = 0; r + 1 < n; ++r) links.emplace_back(builder, 0, Channel{r, r + 1, 0});
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t out = builder.output(0, r);
    const std::int32_t lane = builder.add_lane(r);
    for (std::int32_t c = 0; c < 2; ++c) {
      std::vector<Operand> destinations = {{out, chunk(c), 0}};
      if (r + 1 < n) destinations.push_back({links[at(r)].slot(element), chunk(c), 0});
      if (r == 0) {
        builder.copy(lane, r, destinations, {in, chunk(c), 0});
        continue;
      }
      const Operand got{links[at(r - 1)].view(element), chunk(c), 0};
      builder.recv(lane, links[at(r - 1)].channel(), got);
      builder.copy(lane, r, destinations, got);
      builder.release(lane, links[at(r - 1)].channel());
    }
  }
  return std::move(builder).take();
}

std::vector<Plan> all() {
  const Types sum = types_of(ReduceOp::kSum, DType::kFloat32);
  const Types half = types_of(ReduceOp::kMean, DType::kFloat16);
  const Types integers = types_of(ReduceOp::kMean, DType::kInt64);
  std::vector<Plan> plans;
  plans.push_back(one_device(1, half, false));
  plans.push_back(one_device(4, sum, false));
  plans.push_back(one_device(7, half, true));
  plans.push_back(one_device_over_temp(3, half));
  plans.push_back(one_device_over_temp(5, integers));
  plans.push_back(two_lanes(half));
  plans.push_back(two_lanes(sum, false));
  plans.push_back(ring(3, half));
  plans.push_back(ring(4, sum));
  plans.push_back(halving_doubling(4, half));
  plans.push_back(halving_doubling(8, sum, true));
  plans.push_back(direct(3, integers));
  plans.push_back(direct(4, half, true));
  plans.push_back(direct_in_lanes(3, half));
  plans.push_back(chain_broadcast(3, Element::kBool));
  plans.push_back(ring_gather(4, Element::kBFloat16));
  plans.push_back(scatter(3, half));
  plans.push_back(ring_all_gather(3, Element::kInt16));
  plans.push_back(user_function(3, half));
  return plans;
}

}  // namespace onesum::plan::sample
