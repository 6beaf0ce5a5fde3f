#include <map>
#include <utility>

#include "plan/sample_parts.h"
#include "plan/sample_plans.h"

namespace onesum::plan::sample {

namespace {

// Every rank's lane begins with the counts of pack 0.
Plan after_counts(Plan plan) {
  for (Lane& lane : plan.lanes) {
    Step counts;
    counts.op = Op::kCounts;
    counts.pack = 0;
    lane.steps.insert(lane.steps.begin(), counts);
  }
  lay_out_operands(plan);
  return plan;
}

// Chunks 2r and 2r + 1 are rank r's own.
Chunks own_chunks(std::int32_t rank) { return {static_cast<std::uint32_t>(2 * rank), 2}; }

}  // namespace

Plan scatter(std::int32_t n, const Types& types) {
  Builder builder("scatter", worker_each(n));
  Pack pack = pack_of(n, types, ragged(2 * n));
  pack.contract = Contract::kScatter;
  builder.add_pack(pack);
  const Ends ends(builder, n, types, false);
  std::map<std::pair<std::int32_t, std::int32_t>, Link> links;  // by sender and receiver
  const std::vector<std::uint8_t> merges = canonical_merges(at(n));
  for (std::int32_t from = 0; from < n; ++from) {
    for (std::int32_t to = 0; to < n; ++to) {
      if (from != to) links.emplace(std::pair(from, to), Link(builder, 0, {from, to, 0}));
    }
  }
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t lane = builder.add_lane(r);
    std::vector<Operand> sources;
    for (std::int32_t peer = 0; peer < n; ++peer) {
      sources.push_back({ends.in[at(r)], own_chunks(r), merges[at(peer)]});
      if (peer == r) continue;
      builder.copy(lane, r, {{Operand{links.at({r, peer}).slot(types.input), own_chunks(peer), 0}}},
                   {ends.in[at(r)], own_chunks(peer), 0});
      sources.back().buffer = links.at({peer, r}).view(types.input);
    }
    for (std::int32_t peer = 0; peer < n; ++peer) {
      if (peer != r)
        builder.recv(lane, links.at({peer, r}).channel(), {sources[at(peer)].buffer, own_chunks(r), 0});
    }
    builder.reduce(lane, r, {{Operand{ends.out[at(r)], own_chunks(r), 0}}}, sources, types.accumulator,
                   divisor_of(n, types));
    for (std::int32_t peer = 0; peer < n; ++peer) {
      if (peer != r) builder.release(lane, links.at({peer, r}).channel());
    }
  }
  Plan plan = std::move(builder).take();
  for (Buffer& buffer : plan.buffers) {
    if (buffer.role == Role::kOutput) buffer.window = own_chunks(buffer.index);
  }
  return plan;
}

Plan ring_all_gather(std::int32_t n, Element element) {
  Builder builder("ring_all_gather", worker_each(n));
  Pack pack = pack_of(n, {element, element, element, false}, ragged(2 * n));
  builder.add_pack(pack);
  std::vector<Link> links;
  for (std::int32_t r = 0; r < n; ++r) links.emplace_back(builder, 0, Channel{r, (r + 1) % n, 0});
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t in = builder.input(0, r, element);
    const std::int32_t out = builder.output(0, r);
    const std::int32_t lane = builder.add_lane(r);
    Link& from = links[at((r + n - 1) % n)];
    builder.copy(lane, r,
                 {{Operand{out, own_chunks(r), 0}, Operand{links[at(r)].slot(element), own_chunks(r), 0}}},
                 {in, own_chunks(r), 0});
    for (std::int32_t s = 1; s < n; ++s) {
      const Chunks theirs = own_chunks((r - s + n) % n);
      const Operand got{from.view(element), theirs, 0};
      builder.recv(lane, from.channel(), got);
      builder.copy(lane, r, {{Operand{out, theirs, 0}}}, got);
      builder.release(lane, from.channel());
      if (s + 1 < n) {
        builder.copy(lane, r, {{Operand{links[at(r)].slot(element), theirs, 0}}}, {out, theirs, 0});
      }
    }
  }
  Plan plan = std::move(builder).take();
  plan.packs[0].contract = Contract::kConcatenate;
  for (Buffer& buffer : plan.buffers) {
    if (buffer.role == Role::kInput) buffer.window = own_chunks(buffer.index);
  }
  return plan;
}

Plan ring_gather(std::int32_t n, Element element) {
  Builder builder("ring_gather", worker_each(n));
  Pack pack =
      pack_of(n, {element, element, element, false}, {{SplitRule::kCounts, static_cast<std::uint32_t>(n)}});
  pack.contract = Contract::kConcatenate;
  builder.add_pack(pack);
  std::vector<Link> links;
  for (std::int32_t r = 0; r < n; ++r) links.emplace_back(builder, 0, Channel{r, (r + 1) % n, 0});
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t in = builder.input(0, r, element);
    const std::int32_t out = builder.output(0, r);
    const std::int32_t lane = builder.add_lane(r);
    Link& from = links[at((r + n - 1) % n)];
    builder.copy(lane, r, {{Operand{out, chunk(r), 0}, Operand{links[at(r)].slot(element), chunk(r), 0}}},
                 {in, chunk(r), 0});
    for (std::int32_t s = 1; s < n; ++s) {
      const Chunks theirs = chunk((r - s + n) % n);
      const Operand got{from.view(element), theirs, 0};
      builder.recv(lane, from.channel(), got);
      builder.copy(lane, r, {{Operand{out, theirs, 0}}}, got);
      builder.release(lane, from.channel());
      if (s + 1 < n) {
        builder.copy(lane, r, {{Operand{links[at(r)].slot(element), theirs, 0}}}, {out, theirs, 0});
      }
    }
  }
  return after_counts(std::move(builder).take());
}

}  // namespace onesum::plan::sample
