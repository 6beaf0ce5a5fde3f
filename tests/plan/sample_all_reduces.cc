#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "plan/sample_parts.h"
#include "plan/sample_plans.h"

namespace onesum::plan::sample {

Plan ring(std::int32_t n, const Types& types) {
  Builder builder("ring", worker_each(n));
  builder.add_pack(pack_of(n, types, ragged(n)));
  builder.claim_order("ring");
  const Ends ends(builder, n, types, false);
  std::vector<Link> links;  // two from each rank to the next
  for (std::int32_t r = 0; r < n; ++r) {
    for (std::int32_t number = 0; number < 2; ++number)
      links.emplace_back(builder, 0, Channel{r, (r + 1) % n, number});
  }
  const auto link = [&](std::int32_t from, std::int32_t message) -> Link& {
    return links[at(from * 2 + message % 2)];
  };
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t lane = builder.add_lane(r);
    const std::int32_t previous = (r + n - 1) % n;
    const auto shifted = [&](std::int32_t by) { return chunk(((r - by) % n + n) % n); };
    // The raw chunk travels in the accumulator's type, so that every message of this phase does.
    builder.reduce(lane, r, {{Operand{link(r, 0).slot(types.accumulator), shifted(0), 0}}},
                   {{Operand{ends.in[at(r)], shifted(0), 0}}}, types.accumulator);
    for (std::int32_t s = 1; s < n; ++s) {
      Link& from = link(previous, s - 1);
      const Operand got{from.view(types.accumulator), shifted(s), 0};
      const Operand mine{ends.in[at(r)], shifted(s), 1};
      builder.recv(lane, from.channel(), got);
      if (s < n - 1) {
        builder.reduce(lane, r, {{Operand{link(r, s).slot(types.accumulator), shifted(s), 0}}}, {{got, mine}},
                       types.accumulator);
      } else {
        builder.reduce(lane, r,
                       {{Operand{ends.out[at(r)], shifted(s), 0},
                         Operand{link(r, s).slot(types.output), shifted(s), 0}}},
                       {{got, mine}}, types.accumulator, divisor_of(n, types));
      }
      builder.release(lane, from.channel());
    }
    for (std::int32_t s = 0; s < n - 1; ++s) {
      Link& from = link(previous, n - 1 + s);
      const Operand got{from.view(types.output), shifted(s), 0};
      std::vector<Operand> destinations = {{ends.out[at(r)], shifted(s), 0}};
      if (s < n - 2) destinations.push_back({link(r, n + s).slot(types.output), shifted(s), 0});
      builder.recv(lane, from.channel(), got);
      builder.copy(lane, r, destinations, got);
      builder.release(lane, from.channel());
    }
  }
  return std::move(builder).take();
}

Plan halving_doubling(std::int32_t n, const Types& types, bool in_place) {
  Builder builder("halving_doubling", worker_each(n));
  builder.add_pack(pack_of(n, types, ragged(n)));
  const Ends ends(builder, n, types, in_place);
  const auto stages = static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(n))) - 1;
  std::map<std::pair<std::int32_t, std::int32_t>, Link> links;  // by sender and stage
  for (std::int32_t r = 0; r < n; ++r) {
    for (std::int32_t stage = 0; stage < stages; ++stage) {
      links.emplace(std::pair(r, stage), Link(builder, 0, {r, r ^ (1 << stage), 0}));
    }
  }
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t lane = builder.add_lane(r);
    Operand sum{ends.in[at(r)], {0, static_cast<std::uint32_t>(n)}, 0};
    Element element = types.input;
    for (std::int32_t stage = 0; stage < stages; ++stage) {
      const std::uint32_t half = sum.chunks.count / 2;
      const bool upper = (r >> stage & 1) != 0;
      const Chunks keep{sum.chunks.first + (upper ? half : 0), half};
      const Chunks give{sum.chunks.first + (upper ? 0 : half), half};
      Link& out = links.at({r, stage});
      Link& in = links.at({r ^ (1 << stage), stage});
      const Operand got{in.view(element), keep, 1};
      builder.copy(lane, r, {{Operand{out.slot(element), give, 0}}}, {sum.buffer, give, 0});
      builder.recv(lane, in.channel(), {got.buffer, keep, 0});
      const bool last = stage + 1 == stages;
      const Operand next{last ? ends.out[at(r)] : builder.temp(0, r, types.accumulator, keep), keep, 0};
      builder.reduce(lane, r, {{next}}, {{Operand{sum.buffer, keep, 0}, got}}, types.accumulator,
                     last ? divisor_of(n, types) : 1);
      builder.release(lane, in.channel());
      sum = next;
      element = types.accumulator;
    }
    for (std::int32_t stage = stages - 1; stage >= 0; --stage) {
      const std::uint32_t width = sum.chunks.count;
      const bool upper = (r >> stage & 1) != 0;
      const Chunks theirs{upper ? sum.chunks.first - width : sum.chunks.first + width, width};
      Link& out = links.at({r, stage});
      Link& in = links.at({r ^ (1 << stage), stage});
      const Operand got{in.view(types.output), theirs, 0};
      builder.copy(lane, r, {{Operand{out.slot(types.output), sum.chunks, 0}}},
                   {ends.out[at(r)], sum.chunks, 0});
      builder.recv(lane, in.channel(), got);
      builder.copy(lane, r, {{Operand{ends.out[at(r)], theirs, 0}}}, got);
      builder.release(lane, in.channel());
      sum.chunks = {std::min(sum.chunks.first, theirs.first), 2 * width};
    }
  }
  return std::move(builder).take();
}

Plan direct(std::int32_t n, const Types& types, bool in_place) {
  Builder builder("direct", worker_each(n));
  builder.add_pack(pack_of(n, types, ragged(n)));
  const Ends ends(builder, n, types, in_place);
  std::map<std::pair<std::int32_t, std::int32_t>, Link> raw, result;  // by sender and receiver
  for (std::int32_t from = 0; from < n; ++from) {
    for (std::int32_t to = 0; to < n; ++to) {
      if (from == to) continue;
      raw.emplace(std::pair(from, to), Link(builder, 0, {from, to, 0}));
      result.emplace(std::pair(from, to), Link(builder, 0, {from, to, 1}));
    }
  }
  const std::vector<std::uint8_t> merges = canonical_merges(at(n));
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t lane = builder.add_lane(r);
    for (std::int32_t step = 1; step < n; ++step) {
      const std::int32_t to = (r + step) % n;
      builder.copy(lane, r, {{Operand{raw.at({r, to}).slot(types.input), chunk(to), 0}}},
                   {ends.in[at(r)], chunk(to), 0});
    }
    std::vector<Operand> sources, destinations = {{ends.out[at(r)], chunk(r), 0}};
    for (std::int32_t peer = 0; peer < n; ++peer) {
      if (peer == r) {
        sources.push_back({ends.in[at(r)], chunk(r), merges[at(r)]});
        continue;
      }
      Link& from = raw.at({peer, r});
      sources.push_back({from.view(types.input), chunk(r), merges[at(peer)]});
      builder.recv(lane, from.channel(), {sources.back().buffer, chunk(r), 0});
      destinations.push_back({result.at({r, peer}).slot(types.output), chunk(r), 0});
    }
    builder.reduce(lane, r, destinations, sources, types.accumulator, divisor_of(n, types));
    for (std::int32_t peer = 0; peer < n; ++peer) {
      if (peer != r) builder.release(lane, raw.at({peer, r}).channel());
    }
    for (std::int32_t step = 1; step < n; ++step) {
      const std::int32_t peer = (r + step) % n;
      Link& from = result.at({peer, r});
      const Operand got{from.view(types.output), chunk(peer), 0};
      builder.recv(lane, from.channel(), got);
      builder.copy(lane, r, {{Operand{ends.out[at(r)], chunk(peer), 0}}}, got);
      builder.release(lane, from.channel());
    }
  }
  return std::move(builder).take();
}

Plan direct_in_lanes(std::int32_t n, const Types& types) {
  Builder builder("direct_in_lanes", worker_each(n));
  builder.add_pack(pack_of(n, types, ragged(n)));
  const Ends ends(builder, n, types, true);
  std::map<std::pair<std::int32_t, std::int32_t>, Link> raw, result;  // by sender and receiver
  for (std::int32_t from = 0; from < n; ++from) {
    for (std::int32_t to = 0; to < n; ++to) {
      if (from == to) continue;
      raw.emplace(std::pair(from, to), Link(builder, 0, {from, to, 0}));
      result.emplace(std::pair(from, to), Link(builder, 0, {from, to, 1}));
    }
  }
  const std::vector<std::uint8_t> merges = canonical_merges(at(n));
  for (std::int32_t r = 0; r < n; ++r) {
    const std::int32_t send = builder.add_lane(r);
    const std::int32_t sum = builder.add_lane(r);
    const std::int32_t collect = builder.add_lane(r);
    const std::int32_t mine = ends.in[at(r)];
    std::vector<Operand> sources, destinations = {{mine, chunk(r), 0}};
    std::int32_t sent = 0;
    for (std::int32_t peer = 0; peer < n; ++peer) {
      sources.push_back({mine, chunk(r), merges[at(peer)]});
      if (peer == r) continue;
      sent = builder.copy(send, r, {{Operand{raw.at({r, peer}).slot(types.input), chunk(peer), 0}}},
                          {mine, chunk(peer), 0});
      Link& from = raw.at({peer, r});
      sources.back().buffer = from.view(types.input);
      builder.recv(sum, from.channel(), {sources.back().buffer, chunk(r), 0});
      destinations.push_back({result.at({r, peer}).slot(types.output), chunk(r), 0});
    }
    builder.reduce(sum, r, destinations, sources, types.accumulator, divisor_of(n, types));
    builder.wait(collect, send, sent);
    for (std::int32_t peer = 0; peer < n; ++peer) {
      if (peer == r) continue;
      builder.release(sum, raw.at({peer, r}).channel());
      Link& from = result.at({peer, r});
      const Operand got{from.view(types.output), chunk(peer), 0};
      builder.recv(collect, from.channel(), got);
      builder.copy(collect, r, {{Operand{mine, chunk(peer), 0}}}, got);
      builder.release(collect, from.channel());
    }
  }
  return std::move(builder).take();
}

}  // namespace onesum::plan::sample
