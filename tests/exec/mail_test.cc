// Where messages lie: both ends know the same place, no two messages share one that they must not share, and
// everything has room, whoever of the ranks is near whom.
#include "exec/mail.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "collective/all_reduce.h"
#include "collective/concatenate.h"
#include "collective/one_device.h"
#include "exec/layout.h"
#include "exec/rounds.h"
#include "plan/builder.h"
#include "plan/compose.h"

namespace onesum::exec {
namespace {

using engine::Box;
using engine::NearBoxes;
using engine::Place;
using plan::PackTable;
using plan::Plan;

constexpr NearBoxes kNear{48, 256, true};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  std::size_t between(std::size_t least, std::size_t most) { return least + bits_() % (most - least + 1); }
  bool coin() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 bits_;
};

std::int32_t ranks_of(const Plan& plan) { return *std::ranges::max_element(plan.device_rank) + 1; }

// As rank `own` sees the others: near are those of its machine.
std::vector<NearBoxes> near_of(const std::vector<int>& machines, std::int32_t own) {
  std::vector<NearBoxes> near(machines.size());
  for (std::size_t r = 0; r < machines.size(); ++r) {
    const bool is_other = r != static_cast<std::size_t>(own);
    if (is_other && machines[r] == machines[static_cast<std::size_t>(own)]) near[r] = kNear;
  }
  return near;
}

// What lies in one box: from the header of a message to the end of its payload, and who is alike.
class BoxContents {
 public:
  void add(const Place& place, std::int32_t alike) {
    const auto [found, is_new] = places_.emplace(place.offset, std::pair(place.bytes, alike));
    EXPECT_TRUE(is_new || found->second == std::pair(place.bytes, alike)) << "at " << place.offset;
  }

  void expect_apart_within(std::size_t bytes) const {
    std::size_t end = 0;
    for (const auto& [offset, message] : places_) {
      EXPECT_EQ(offset % engine::kMessageAlignment, 0U);
      EXPECT_GE(offset, end + engine::kMessageHeader);
      end = offset + message.first;
    }
    EXPECT_LE(end, bytes);
  }
  std::size_t size() const { return places_.size(); }

 private:
  std::map<std::size_t, std::pair<std::size_t, std::int32_t>> places_;
};

// The mail of one round, as every rank deals it.
class Dealt {
 public:
  Dealt(const Plan& plan, const Messages& messages, const std::vector<std::int64_t>& bytes,
        const std::vector<int>& machines)
      : plan_(plan), messages_(messages), bytes_(bytes), machines_(machines) {
    for (std::int32_t own = 0; own < ranks_of(plan); ++own)
      mail_.push_back(deal_mail(plan, messages, bytes, own, near_of(machines, own)));
  }

  void expect_right(const engine::Limits& limits) {
    for (std::size_t m = 0; m < bytes_.size(); ++m) {
      if (bytes_[m] >= 0) expect_right(m);
    }
    for (const auto& [ranks, contents] : pairs_) contents.expect_apart_within(limits.bytes);
    for (const auto& [rank, contents] : common_) {
      contents.expect_apart_within(std::max(limits.bytes, limits.common_bytes));
    }
    for (const auto& [row, numbers] : numbers_) {
      EXPECT_LE(numbers.size(), limits.messages);
      for (std::uint32_t number = 0; number < numbers.size(); ++number) EXPECT_TRUE(numbers.contains(number));
    }
    for (const auto& [alike, writers] : writers_) EXPECT_EQ(writers, 1) << "of those like " << alike;
  }

  std::size_t commons() const {
    std::size_t all = 0;
    for (const auto& [rank, contents] : common_) all += contents.size();
    return all;
  }

 private:
  using Ranks = std::pair<std::int32_t, std::int32_t>;  // sender, receiver

  std::int32_t from(std::size_t m) const {
    return plan_.rank_of(plan_.channel(messages_.all[m].channel).from);
  }
  std::int32_t to(std::size_t m) const { return plan_.rank_of(plan_.channel(messages_.all[m].channel).to); }
  const Posting& posting(std::int32_t rank, std::size_t m) const {
    return mail_[static_cast<std::size_t>(rank)].postings[m];
  }
  bool are_near(std::int32_t a, std::int32_t b) const {
    return machines_[static_cast<std::size_t>(a)] == machines_[static_cast<std::size_t>(b)];
  }

  void expect_right(std::size_t m) {
    const std::int32_t sender = from(m);
    const std::int32_t receiver = to(m);
    SCOPED_TRACE("message " + std::to_string(m) + " of " + std::to_string(bytes_[m]) + " bytes from " +
                 std::to_string(sender) + " to " + std::to_string(receiver));
    for (std::int32_t rank = 0; rank < ranks_of(plan_); ++rank) {
      const bool is_end = rank == sender || rank == receiver;
      EXPECT_EQ(posting(rank, m).way == Way::kForeign, !is_end);
    }
    if (sender == receiver) {
      EXPECT_EQ(posting(sender, m).way, Way::kLocal);
      return;
    }
    ASSERT_EQ(posting(sender, m).way, Way::kOutgoing);
    ASSERT_EQ(posting(receiver, m).way, Way::kIncoming);
    EXPECT_EQ(posting(sender, m).place.peer, receiver);
    EXPECT_EQ(posting(receiver, m).place.peer, sender);
    Place place = posting(sender, m).place;
    place.peer = sender;
    EXPECT_TRUE(place == posting(receiver, m).place) << "both ends differ";
    EXPECT_EQ(static_cast<std::int64_t>(place.bytes), bytes_[m]);
    // Common messages have lines of their own, one for all who read the same.
    const bool is_common = engine::is_common(place.box);
    const auto what = is_common ? static_cast<std::size_t>(messages_.alike[m]) : m;
    const auto found = numbers_[Ranks(sender, is_common ? sender : receiver)].emplace(place.number, what);
    EXPECT_TRUE(found.second || (is_common && found.first->second == what))
        << "two messages are announced on one line";
    add(m, place, posting(sender, m).is_written);
  }

  void add(std::size_t m, const Place& place, bool is_written) {
    const bool near = are_near(from(m), to(m));
    EXPECT_TRUE(near || place.box == Box::kPair);
    const bool is_tiny = engine::is_tiny(place.box);
    EXPECT_EQ(is_tiny, near && place.bytes <= kNear.tiny_bytes);
    EXPECT_TRUE(!is_tiny || place.offset == place.number * kNear.tiny_stride);
    EXPECT_TRUE(engine::is_common(place.box) || is_written);
    if (place.box == Box::kPair) pairs_[{from(m), to(m)}].add(place, static_cast<std::int32_t>(m));
    if (place.box == Box::kCommon) common_[from(m)].add(place, messages_.alike[m]);
    if (engine::is_common(place.box)) writers_[messages_.alike[m]] += is_written ? 1 : 0;
  }

  const Plan& plan_;
  const Messages& messages_;
  const std::vector<std::int64_t>& bytes_;
  const std::vector<int>& machines_;
  std::vector<Mail> mail_;  // by rank
  std::map<Ranks, BoxContents> pairs_;
  std::map<std::int32_t, BoxContents> common_;  // by sender
  std::map<Ranks, std::map<std::uint32_t, std::size_t>>
      numbers_;                          // by row: of the common one, twice the sender
  std::map<std::int32_t, int> writers_;  // of those in a common box, by the first of those alike
};

// Says how many payloads lay in common boxes; nothing if the messages of an element have no room.
std::optional<std::size_t> deal_and_expect(const Plan& plan, const std::vector<PackTable>& tables,
                                           const engine::Limits& limits, const std::vector<int>& machines) {
  const Messages messages = messages_of(plan);
  std::vector<Round> rounds;
  try {
    rounds = rounds_of(plan, messages, tables, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented) << error.what();
    return {};
  }
  const SlotNumbers slots(plan, messages, 0, 0, {limits.phases, near_of(machines, 0), 0}, rounds.size());
  std::size_t commons = 0;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    SCOPED_TRACE(plan.algorithm + ", round " + std::to_string(r));
    const std::vector<std::int64_t> bytes =
        Layout(plan, messages, rounds[r], slots, 0, r).bytes_of_messages();
    Dealt dealt(plan, messages, bytes, machines);
    dealt.expect_right(limits);
    commons += dealt.commons();
    if (::testing::Test::HasFailure()) break;
  }
  return commons;
}

// Workers of one to three devices, on machines of any size, in any order.
struct Workers {
  collective::Topology topology;
  std::vector<int> machines;
};

Workers draw_workers(Dice& dice) {
  Workers workers;
  const std::size_t ranks = dice.between(2, 6);
  const std::size_t machines = dice.coin() ? 1 : dice.between(1, 4);
  for (std::size_t r = 0; r < ranks; ++r) {
    workers.machines.push_back(static_cast<int>(dice.between(0, machines - 1)));
    workers.topology.machines.push_back(workers.machines.back());
    workers.topology.hosts.push_back(static_cast<std::int32_t>(workers.topology.device_rank.size()));
    const std::size_t devices = dice.between(1, 3);
    workers.topology.device_rank.insert(workers.topology.device_rank.end(), devices,
                                        static_cast<std::int32_t>(r));
  }
  return workers;
}

collective::Task draw_task(Dice& dice, const collective::Topology& topology) {
  static constexpr Element kElements[] = {Element::kFloat32, Element::kFloat16, Element::kFloat64};
  collective::Task task;
  task.output = kElements[dice.between(0, 2)];
  task.accumulator = task.output == Element::kFloat16 ? Element::kFloat32 : task.output;
  for (std::size_t d = 0; d < topology.device_rank.size(); ++d) {
    task.replicas.push_back({static_cast<std::int32_t>(d), task.output});
    task.destinations.push_back({static_cast<std::int32_t>(d), -1});
  }
  return task;
}

collective::Scheme draw_scheme(Dice& dice) {
  const auto algorithm = [&] {
    return *collective::algorithm_named(
        collective::algorithm_names()[dice.between(0, collective::algorithm_names().size() - 1)]);
  };
  collective::Scheme scheme;
  if (dice.coin()) scheme.inside = algorithm();
  scheme.across = algorithm();
  scheme.shards = static_cast<std::uint32_t>(dice.between(1, 3));
  scheme.fast = dice.coin();
  scheme.number = dice.between(0, 4);
  return scheme;
}

// One that uses a part of what the topology has.
Plan draw_plan(Dice& dice, const collective::Topology& topology, collective::Task task) {
  const auto any_device = [&] {
    return static_cast<std::int32_t>(dice.between(0, topology.device_rank.size() - 1));
  };
  switch (dice.between(0, 5)) {
    case 0: {
      task.contract = plan::Contract::kConcatenate;
      task.accumulator = task.output;
      if (dice.coin()) task.destinations.resize(dice.between(1, task.destinations.size()));
      return collective::concatenate(topology, task, any_device());
    }
    case 1: {  // as a broadcast does
      task.replicas = {task.replicas[static_cast<std::size_t>(any_device())]};
      return collective::one_device(topology, task, task.replicas.front().device);
    }
    case 2:
      task.destinations.resize(dice.between(1, task.destinations.size()));
      return collective::one_device(topology, task, any_device());
    case 3:
      task.accumulator = task.output;
      return collective::one_device(topology, task, any_device(), collective::Accumulation::kFunction);
    default:
      return collective::all_reduce(topology, task, draw_scheme(dice));
  }
}

PackTable draw_table(Dice& dice, const plan::Pack& pack) {
  const std::size_t most = dice.coin() ? 40 : 4000;
  PackTable table;
  if (pack.contract == plan::Contract::kConcatenate) {
    for (std::size_t r = 0; r < pack.replicas.size(); ++r) table.counts.push_back(dice.between(0, most / 8));
    table.outer = dice.coin() ? 1 : dice.between(0, 5);
    table.members = {{std::accumulate(table.counts.begin(), table.counts.end(), std::size_t{0}), 0, 1}};
    return table;
  }
  const std::size_t members = dice.between(1, 3);
  for (std::size_t i = 0; i < members; ++i)
    table.members.push_back({dice.between(0, most), 0, static_cast<std::uint32_t>(pack.replicas.size())});
  return table;
}

TEST(Mail, BothEndsAgreeAndEverythingHasRoom) {
  std::size_t dealt = 0;
  std::size_t commons = 0;
  for (std::uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const Workers workers = draw_workers(dice);
    std::vector<Plan> parts;
    const std::size_t packs = dice.coin() ? 1 : dice.between(2, 6);
    for (std::size_t p = 0; p < packs; ++p)
      parts.push_back(draw_plan(dice, workers.topology, draw_task(dice, workers.topology)));
    const Plan plan = parts.size() == 1 ? parts.front() : plan::side_by_side(parts);
    std::vector<PackTable> tables;
    for (const plan::Pack& pack : plan.packs) tables.push_back(draw_table(dice, pack));
    engine::Limits limits{dice.between(16, 256) * 64, dice.coin() ? 1024U : 12U, 4};
    const bool are_all_near = std::ranges::count(workers.machines, workers.machines.front()) ==
                              static_cast<std::ptrdiff_t>(workers.machines.size());
    if (are_all_near && dice.coin()) limits.common_bytes = dice.between(8, 1024) * 64;
    const std::optional<std::size_t> found = deal_and_expect(plan, tables, limits, workers.machines);
    if (!found) continue;
    ++dealt;
    commons += *found;
  }
  EXPECT_GT(dealt, 200U);
  EXPECT_GT(commons, 1000U);
}

// Rank 0 sends the first half of what it has to two ranks, the second half to two others: more than what any
// of them gets is in its common box.
Plan halves_for_two_each() {
  plan::Builder builder("halves", {0, 1, 2, 3, 4});
  plan::Pack pack;
  pack.replicas = {0};
  pack.destinations = {1, 2, 3, 4};
  pack.split = {{plan::SplitRule::kRagged, 2}};
  builder.add_pack(pack);
  const std::int32_t input = builder.input(0, 0, Element::kFloat32);
  const std::int32_t sender = builder.add_lane(0);
  for (std::uint32_t half = 0; half < 2; ++half) {
    std::vector<plan::Operand> slots;
    for (const std::int32_t device :
         {2 * static_cast<std::int32_t>(half) + 1, 2 * static_cast<std::int32_t>(half) + 2}) {
      const std::int32_t channel = builder.add_channel({0, device, 0});
      slots.push_back({builder.slot(0, channel, Element::kFloat32), {half, 1}});
      const plan::Operand view{builder.view(0, channel, Element::kFloat32), {half, 1}};
      const plan::Operand result{builder.output(0, device - 1), {half, 1}};
      const std::int32_t lane = builder.add_lane(device);
      builder.recv(lane, channel, view);
      builder.copy(lane, device, std::span(&result, 1), view);
    }
    builder.copy(sender, 0, slots, {input, {half, 1}});
  }
  return std::move(builder).take();
}

TEST(Mail, TheCommonBoxIsNotLargerThanTheOthersUnlessItIsSaidToBe) {
  const Plan plan = halves_for_two_each();
  EXPECT_EQ(messages_of(plan).alike, (std::vector<std::int32_t>{0, 0, 2, 2}));
  const engine::Limits limits{64 + 1024, 8, 4};
  for (const std::size_t elements : {0U, 24U, 200U, 512U, 5000U}) {
    const std::vector<PackTable> tables{{{{elements, 0, 1}}, {}, 1}};
    const std::size_t commons = deal_and_expect(plan, tables, limits, {0, 0, 0, 0, 0}).value();
    EXPECT_EQ(commons > 0, elements > 24) << elements;  // tiny ones lie where they are announced
    deal_and_expect(plan, tables, limits, {0, 0, 1, 1, 1});
  }
  const std::vector<PackTable> both_halves{{{{512, 0, 1}}, {}, 1}};
  const auto rounds = [&](const engine::Limits& other) {
    return rounds_of(plan, messages_of(plan), both_halves, other).size();
  };
  EXPECT_GT(rounds({64 + 1024, 8, 4}), 1U);
  EXPECT_EQ(rounds({.bytes = 64 + 1024, .messages = 8, .phases = 4, .common_bytes = 2 * (64 + 1024)}), 1U);
  EXPECT_EQ(rounds({.bytes = 128, .messages = 8, .phases = 4, .common_bytes = 2 * (64 + 1024)}), 1U);
}

// Of five that get the same, rank 0 has none near, one, or some.
TEST(Mail, OnlyThoseNearShareABox) {
  const collective::Topology topology{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}};
  collective::Task task;
  task.replicas = {{0, Element::kFloat32}};
  for (std::int32_t d = 0; d < 5; ++d) task.destinations.push_back({d, -1});
  const Plan plan = collective::one_device(topology, task, 0);
  const std::vector<PackTable> tables{{{{100, 0, 1}}, {}, 1}};
  const engine::Limits limits{4096, 8, 4};
  EXPECT_EQ(deal_and_expect(plan, tables, limits, {0, 1, 1, 1, 1}), 0U);
  EXPECT_EQ(deal_and_expect(plan, tables, limits, {0, 0, 1, 1, 1}), 0U);
  EXPECT_EQ(deal_and_expect(plan, tables, limits, {0, 1, 0, 1, 0}), 1U);
  EXPECT_EQ(deal_and_expect(plan, tables, limits, {0, 0, 0, 0, 0}), 1U);
}

// Each rank knows of its own results alone which are in place; where messages lie must not depend on it.
TEST(Mail, ResultsInPlaceChangeNothing) {
  for (std::uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const Workers workers = draw_workers(dice);
    const collective::Topology& topology = workers.topology;
    const collective::Task task = draw_task(dice, topology);
    const collective::Scheme scheme = draw_scheme(dice);
    const bool by_function = dice.between(0, 5) == 0;
    const auto on = static_cast<std::int32_t>(dice.between(0, topology.device_rank.size() - 1));
    std::optional<Messages> expected;
    for (std::int32_t own = -1; own < static_cast<std::int32_t>(topology.hosts.size()); ++own) {
      collective::Task known = task;
      for (collective::Target& target : known.destinations) {
        if (topology.rank_of(target.device) == own && dice.coin()) target.in_place_of = target.device;
      }
      const Plan plan = by_function
                            ? collective::one_device(topology, known, on, collective::Accumulation::kFunction)
                            : collective::all_reduce(topology, known, scheme);
      const Messages found = messages_of(plan);
      if (!expected) expected = found;
      SCOPED_TRACE(plan.algorithm + " as rank " + std::to_string(own) + " knows it");
      EXPECT_EQ(found.alike, expected->alike);
      ASSERT_EQ(found.all.size(), expected->all.size());
      for (std::size_t m = 0; m < found.all.size(); ++m) {
        EXPECT_EQ(found.all[m].channel, expected->all[m].channel);
        EXPECT_EQ(found.all[m].chunks, expected->all[m].chunks);
      }
    }
  }
}

}  // namespace
}  // namespace onesum::exec
