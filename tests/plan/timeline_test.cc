#include "plan/timeline.h"

#include <chrono>
#include <iostream>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/error.h>

#include "plan/sample_plans.h"
#include "plan/text.h"

namespace onesum::plan {
namespace {

// A stored lane a few steps at a time, each time as a part whose channels are numbered otherwise.
class Pieces final : public LaneStream {
 public:
  Pieces(const Plan& plan, std::size_t lane) : plan_(plan), lane_(lane) {}

  bool next(Stretch& stretch) override {
    const std::vector<Step>& steps = plan_.lanes[lane_].steps;
    if (at_ == steps.size()) return false;
    const auto channels = static_cast<std::int32_t>(plan_.channels.size());
    const auto renumbered = [&](std::int32_t channel) {
      return (channel + static_cast<std::int32_t>(at_)) % channels;
    };
    part_ = plan_;
    for (std::int32_t i = 0; i < channels; ++i) {
      part_.channels[static_cast<std::size_t>(renumbered(i))] = plan_.channel(i);
    }
    for (Buffer& buffer : part_.buffers) {
      if (buffer.role == Role::kSlot || buffer.role == Role::kView) buffer.index = renumbered(buffer.index);
    }
    steps_.clear();
    for (std::size_t n = at_ % 3; n < 3 && at_ + steps_.size() < steps.size(); ++n) {  // sometimes fewer
      Step step = steps[at_ + steps_.size()];
      if (step.channel >= 0) step.channel = renumbered(step.channel);
      steps_.push_back(step);
    }
    at_ += steps_.size();
    stretch = {&part_, steps_};
    return true;
  }

 private:
  const Plan& plan_;
  std::size_t lane_;
  std::size_t at_ = 0;
  Plan part_;
  std::vector<Step> steps_;
};

Cost timeline_of_pieces(const Plan& plan, const Sizes& sizes, const CostConstants& constants = {},
                        Links links = Links::kShared) {
  std::vector<std::unique_ptr<Pieces>> streams;
  std::vector<TimelineLane> lanes;
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    streams.push_back(std::make_unique<Pieces>(plan, i));
    lanes.push_back({plan.lanes[i].rank, streams.back().get(), 0, true});
  }
  return timeline(lanes, sizes, constants, links);
}

TEST(Timeline, OfStreamsIsThatOfTheStoredPlan) {
  for (const Plan& plan : sample::all()) {
    const Sizes sizes{{1000}, {{5, 7, 0, 3}}};
    const Cost streamed = timeline_of_pieces(plan, sizes);
    const Cost stored = cost(plan, sizes);
    EXPECT_EQ(streamed.seconds, stored.seconds) << to_text(plan);
    EXPECT_EQ(streamed.longest_chain, stored.longest_chain);
    EXPECT_EQ(streamed.steps, stored.steps);
    EXPECT_EQ(streamed.messages, stored.messages);
    EXPECT_EQ(streamed.total.bytes_sent, stored.total.bytes_sent);
    EXPECT_EQ(streamed.total.additions, stored.total.additions);
  }
}

// Worker 0 sums what two others send.
constexpr const char* kFanIn = R"(plan fan_in
order canonical
devices 0 1 2
p0 reduce float32 to float32; replicas 1 2; destinations 0
c0 1 -> 0
c1 2 -> 0
b0 input 0 of p0 on 1 float32
b1 input 1 of p0 on 2 float32
b2 output 0 of p0 on 0 float32
b3 slot c0 of p0 on 1 float32
b4 slot c1 of p0 on 2 float32
b5 view c0 of p0 on 0 float32
b6 view c1 of p0 on 0 float32
lane of rank 0
  recv c0: b5
  recv c1: b6
  reduce on 0 in float32: b2 = b5 + b6
  release c0
  release c1
lane of rank 1
  copy on 1: b3 = b0
lane of rank 2
  copy on 2: b4 = b1
)";

std::string replaced(std::string text, const std::string& find, const std::string& replace) {
  for (std::size_t at = text.find(find); at != std::string::npos; at = text.find(find, at + replace.size())) {
    text.replace(at, find.size(), replace);
  }
  return text;
}

TEST(Timeline, MessagesToARankShareItsLink) {
  const CostConstants links{{0, 0}, {10, 1}, 0, 2, 0};
  const Cost c = cost(parse_text(kFanIn), {{25}, {}}, links);
  EXPECT_DOUBLE_EQ(c.seconds, 10 + 100 + 100);
  EXPECT_EQ(c.across.messages, 2u);
  EXPECT_EQ(c.across.bytes, 200u);
  EXPECT_EQ(c.inside.messages, 0u);
}

TEST(Timeline, MessagesOfARankShareItsLink) {
  // Both senders are one worker with two lanes.
  std::string text = replaced(kFanIn, "devices 0 1 2", "devices 0 1 1");
  text = replaced(text, "lane of rank 2", "lane of rank 1");
  const CostConstants links{{0, 0}, {10, 1}, 0, 2, 0};
  EXPECT_DOUBLE_EQ(cost(parse_text(text), {{25}, {}}, links).seconds, 10 + 100 + 100);
}

TEST(Timeline, MessagesInsideARankTakeTheirOwnTime) {
  std::string text = replaced(kFanIn, "devices 0 1 2", "devices 0 0 0");
  text = replaced(text, "lane of rank 2", "lane of rank 0");
  text = replaced(text, "lane of rank 1", "lane of rank 0");
  const CostConstants links{{3, 2}, {10, 1}, 0, 2, 0};
  const Cost c = cost(parse_text(text), {{25}, {}}, links);
  EXPECT_DOUBLE_EQ(c.seconds, 3 + 200);
  EXPECT_EQ(c.inside.messages, 2u);
  EXPECT_EQ(c.inside.bytes, 200u);
  EXPECT_EQ(c.across.messages, 0u);
}

// A message that is sent first is not held up by one whose step began earlier and takes longer.
TEST(Timeline, LinksServeMessagesAsTheyAreSent) {
  std::string text =
      replaced(kFanIn, "  copy on 1: b3 = b0\n", "  copy on 1: b7 = b0\n  copy on 1: b3 = b0\n");
  text = replaced(text, "lane of rank 0\n", "b7 temp 0 of p0 on 1 float32\nlane of rank 0\n");
  const CostConstants links{{0, 0}, {0, 1}, 1, 2, 0};
  // Rank 2 sends at 200, which takes till 300; rank 1 sends at 400, till 500; then a sum of 300 bytes.
  EXPECT_DOUBLE_EQ(cost(parse_text(text), {{25}, {}}, links).seconds, 800);
}

TEST(Timeline, CountsAreKnownWhenTheLastRankHasCome) {
  const CostConstants latency{{0, 0}, {1, 0}, 0, 2, 0};
  const Plan gather = sample::ring_gather(3, Element::kFloat32);
  // Two latencies for the counts of three ranks, two for rows that pass two neighbours.
  EXPECT_DOUBLE_EQ(cost(gather, {{0}, {{1, 1, 1}}}, latency).seconds, 4);
  std::string text = to_text(gather);
  text.erase(text.find("  counts p0\n"), 12);
  try {
    cost(parse_text(text), {{0}, {{1, 1, 1}}}, latency);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("3 lanes wait, lane 0 at its step 1 for a message"));
  }
}

// A reduce-scatter around a ring, made as it goes: `rounds` messages from each rank to the next.
class RingLane final : public LaneStream {
 public:
  RingLane(std::int32_t ranks, std::int32_t rank, std::int32_t rounds) : rank_(rank), rounds_(rounds) {
    for (std::int32_t i = 0; i < ranks; ++i) part_.device_rank.push_back(i);
    Pack& pack = part_.packs.emplace_back();
    pack.split = {{SplitRule::kRagged, static_cast<std::uint32_t>(ranks)}};
    pack.replicas = part_.device_rank;
    const std::int32_t previous = (rank + ranks - 1) % ranks;
    part_.channels = {{rank, (rank + 1) % ranks, 0}, {previous, rank, 0}};
    const Chunks all{0, static_cast<std::uint32_t>(ranks)};
    part_.buffers = {{Role::kInput, rank, 0, rank, Element::kFloat32, all},
                     {Role::kSlot, rank, 0, 0, Element::kFloat32, all},
                     {Role::kView, rank, 0, 1, Element::kFloat32, all},
                     {Role::kTemp, rank, 0, rank, Element::kFloat32, all}};
  }

  bool next(Stretch& stretch) override {
    constexpr std::int32_t kRoundsAtATime = 50;
    if (round_ > rounds_) return false;
    steps_.clear();
    part_.operands.clear();
    for (std::int32_t i = 0; i < kRoundsAtATime && round_ <= rounds_; ++i) add_round(round_++);
    stretch = {&part_, steps_};
    return true;
  }

 private:
  void add(Op op, std::int32_t channel, std::vector<Operand> destinations, std::vector<Operand> sources) {
    Step step;
    step.op = op;
    step.device = rank_;
    step.channel = channel;
    step.first_operand = static_cast<std::uint32_t>(part_.operands.size());
    step.num_destinations = static_cast<std::uint16_t>(destinations.size());
    step.num_sources = static_cast<std::uint16_t>(sources.size());
    part_.operands.insert(part_.operands.end(), destinations.begin(), destinations.end());
    part_.operands.insert(part_.operands.end(), sources.begin(), sources.end());
    steps_.push_back(step);
  }

  // Sends what the round before gave, or at first its own chunk; the last round only sums.
  void add_round(std::int32_t round) {
    const auto ranks = static_cast<std::int32_t>(part_.device_rank.size());
    const Chunks chunk{static_cast<std::uint32_t>((rank_ + ranks - round % ranks) % ranks), 1};
    if (round == 0) return add(Op::kCopy, -1, {{1, chunk, 0}}, {{0, chunk, 0}});
    add(Op::kRecv, 1, {{2, chunk, 0}}, {});
    add(Op::kReduce, -1, {{round == rounds_ ? 3 : 1, chunk, 0}}, {{2, chunk, 0}, {0, chunk, 1}});
    add(Op::kRelease, 1, {}, {});
  }

  std::int32_t rank_;
  std::int32_t rounds_;
  std::int32_t round_ = 0;
  Plan part_;
  std::vector<Step> steps_;
};

// All ranks of a ring, each with one lane.
struct StreamedRing {
  StreamedRing(std::int32_t ranks, std::int32_t rounds) {
    for (std::int32_t r = 0; r < ranks; ++r) {
      streams.push_back(std::make_unique<RingLane>(ranks, r, rounds));
      lanes.push_back({r, streams.back().get(), 0, false});
    }
  }
  std::vector<std::unique_ptr<RingLane>> streams;
  std::vector<TimelineLane> lanes;
};

TEST(Timeline, TakesARingOf512RanksAsItIsMade) {
  constexpr std::int32_t kRanks = 512;
  const StreamedRing ring(kRanks, kRanks - 1);
  const CostConstants constants{{0, 0}, {1, 1}, 1, 2, 1};
  const auto begin = std::chrono::steady_clock::now();
  const Cost c = timeline(ring.lanes, {{kRanks}, {}}, constants, Links::kOwn);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(c.messages, std::size_t{kRanks} * (kRanks - 1));
  EXPECT_EQ(c.longest_chain, std::size_t{kRanks});
  EXPECT_EQ(c.across.bytes, 4u * kRanks * (kRanks - 1));
  // A copy of 8 bytes, then rounds of a message of 4 bytes and a reduce of 12.
  EXPECT_DOUBLE_EQ(c.seconds, 9 + (kRanks - 1) * (1 + 4 + 13));
  std::cout << c.steps << " copies and reductions in " << seconds.count() * 1e3 << " ms\n";
}

// The last chunk is 7 times as long as the others: whoever has it holds the others up.
TEST(Timeline, OfOwnLinksIsThatOfSharedLinks) {
  constexpr std::int32_t kRanks = 7;
  for (const std::size_t slots : {2, 3, 8}) {
    for (const std::int32_t rounds : {1, 6, 200}) {
      const CostConstants constants{{0, 0}, {1.3, 0.7}, 0.11, slots, 0.05};
      const Sizes sizes{{kRanks + 6}, {}};
      const Cost own = timeline(StreamedRing(kRanks, rounds).lanes, sizes, constants, Links::kOwn);
      const Cost shared = timeline(StreamedRing(kRanks, rounds).lanes, sizes, constants, Links::kShared);
      EXPECT_EQ(own.seconds, shared.seconds) << slots << " slots, " << rounds << " rounds";
      EXPECT_EQ(own.longest_chain, shared.longest_chain);
    }
  }
}

// Worker 0 sends worker 1 its vector three times.
constexpr const char* kThrice = R"(plan thrice
order canonical
devices 0 1
p0 reduce float32 to float32; replicas 0; destinations 1
c0 0 -> 1
b0 input 0 of p0 on 0 float32
b1 output 0 of p0 on 1 float32
b2 slot c0 of p0 on 0 float32
b3 view c0 of p0 on 1 float32
lane of rank 0
  copy on 0: b2 = b0
  copy on 0: b2 = b0
  copy on 0: b2 = b0
lane of rank 1
  recv c0: b3
  copy on 1: b1 = b3
  release c0
  recv c0: b3
  copy on 1: b1 = b3
  release c0
  recv c0: b3
  copy on 1: b1 = b3
  release c0
)";

TEST(Timeline, StepsWaitForSlots) {
  for (const Links links : {Links::kShared, Links::kOwn}) {
    const auto seconds = [&](std::size_t slots) {
      return timeline_of_pieces(parse_text(kThrice), {{25}, {}}, {{0, 0}, {10, 0}, 1, slots, 0}, links)
          .seconds;
    };
    // Copies of 200: one after the other, two at a time, and sent without waiting.
    EXPECT_DOUBLE_EQ(seconds(1), 3 * (200 + 10 + 200));
    EXPECT_DOUBLE_EQ(seconds(2), (200 + 10 + 200) + (200 + 10 + 200));
    EXPECT_DOUBLE_EQ(seconds(3), 200 + 10 + 3 * 200);
  }
}

TEST(Timeline, RefusesLinksThatAreNotOwn) {
  const auto refusal_of = [](const std::string& text) -> std::string {
    try {
      timeline_of_pieces(parse_text(text), {{25}, {}}, {}, Links::kOwn);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal_of(kFanIn), ::testing::HasSubstr("rank 0 hears from ranks 2 and 1"));
  const std::string two_lanes = replaced(kFanIn, "devices 0 1 2", "devices 0 1 1");
  EXPECT_THAT(refusal_of(replaced(two_lanes, "lane of rank 2", "lane of rank 1")),
              ::testing::HasSubstr("rank 1 has several lanes"));
}

}  // namespace
}  // namespace onesum::plan
