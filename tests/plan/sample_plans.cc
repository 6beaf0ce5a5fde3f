#include "plan/sample_plans.h"

#include <bit>
#include <map>
#include <utility>

namespace onesum::plan::sample {

namespace {

std::vector<std::int32_t> one_worker(std::int32_t devices) {
  return std::vector<std::int32_t>(static_cast<std::size_t>(devices), 0);
}

std::vector<std::int32_t> worker_each(std::int32_t devices) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t i = 0; i < devices; ++i) ranks.push_back(i);
  return ranks;
}

Chunks chunk(std::int32_t i) { return {static_cast<std::uint32_t>(i), 1}; }

// A channel with the slot and view buffers that its messages need, by type.
class Link {
 public:
  Link(Builder& builder, std::int32_t pack, Channel channel)
      : builder_(&builder), pack_(pack), channel_(builder.add_channel(channel)) {}

  std::int32_t channel() const { return channel_; }
  std::int32_t slot(Element element) {
    const auto [entry, is_new] = slots_.emplace(element, 0);
    if (is_new) entry->second = builder_->slot(pack_, channel_, element);
    return entry->second;
  }
  std::int32_t view(Element element) {
    const auto [entry, is_new] = views_.emplace(element, 0);
    if (is_new) entry->second = builder_->view(pack_, channel_, element);
    return entry->second;
  }

 private:
  Builder* builder_;
  std::int32_t pack_;
  std::int32_t channel_;
  std::map<Element, std::int32_t> slots_, views_;
};

// Inputs and outputs of n devices; in place they are the same.
struct Ends {
  std::vector<std::int32_t> in, out;
  Ends(Builder& builder, std::int32_t n, const Types& types, bool in_place) {
    for (std::int32_t i = 0; i < n; ++i) {
      in.push_back(in_place ? builder.inout(0, i, types.input) : builder.input(0, i, types.input));
    }
    for (std::int32_t i = 0; i < n; ++i) {
      out.push_back(in_place ? in[static_cast<std::size_t>(i)] : builder.output(0, i));
    }
  }
};

std::int64_t divisor_of(std::int32_t n, const Types& types) { return types.mean ? n : 1; }

Split ragged(std::int32_t parts) { return {{SplitRule::kRagged, static_cast<std::uint32_t>(parts)}}; }

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

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
