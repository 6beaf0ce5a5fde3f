// The agreement on who goes on, between workers whose messages, deaths and lost links come in any order.
#include "cluster/shrinking.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onesum::cluster {
namespace {

using ::testing::ElementsAre;

using AnyMessage = std::variant<Joining, Proposal, Assent, Decision>;

// Workers that are values, and links between them that keep order and lose nothing until they are cut.
class World {
 public:
  explicit World(int size) : size_(size), is_dead_(Index(size)) {
    for (int r = 0; r < size; ++r) workers_.emplace_back(r, size, 1000 * (static_cast<std::uint64_t>(r) + 1));
  }

  Shrinking& operator[](int rank) { return workers_[Index(rank)]; }
  int size() const { return size_; }
  bool is_dead(int rank) const { return is_dead_[Index(rank)]; }

  void join(int rank, std::uint64_t completed) {
    if (is_dead(rank)) return;
    workers_[Index(rank)].join(completed);
    send(rank);
  }

  // What it has sent arrives, and then its end, or its goodbye.
  void kill(int rank) {
    is_dead_[Index(rank)] = true;
    for (int r = 0; r < size_; ++r) {
      if (r != rank && !is_cut(rank, r)) links_[{rank, r}].push_back(Standing::kDead);
    }
  }

  // Nothing arrives any more in either direction, and after a while both notice.
  void cut(int a, int b) {
    if (is_cut(a, b)) return;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      links_[{from, to}].clear();
      links_[{from, to}].push_back(Standing::kLost);
      cut_.insert({from, to});
    }
  }
  bool is_cut(int from, int to) const { return cut_.contains({from, to}); }

  void give_up(int rank, int whom) {
    workers_[Index(rank)].give_up(whom);
    send(rank);
  }

  // One thing that is under way arrives. False: there is none.
  template <class Random>
  bool step(Random& random) {
    std::vector<std::pair<int, int>> busy;
    for (const auto& [link, queue] : links_) {
      if (!queue.empty()) busy.push_back(link);
    }
    if (busy.empty()) return false;
    const auto [from, to] = busy[random() % busy.size()];
    const Event event = links_[{from, to}].front();
    links_[{from, to}].pop_front();
    if (is_dead(to)) return true;
    Shrinking& receiver = workers_[Index(to)];
    const int sender = from;
    if (const auto* standing = std::get_if<Standing>(&event)) {
      receiver.lose(sender, *standing);
    } else {
      std::visit([&](const auto& message) { receiver.hear(sender, message); }, std::get<AnyMessage>(event));
    }
    send(to);
    return true;
  }

  template <class Random>
  void settle(Random& random) {
    while (step(random)) {
    }
  }

 private:
  using Event = std::variant<AnyMessage, Standing>;
  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }

  void send(int from) {
    for (const Shrinking::Outgoing& outgoing : workers_[Index(from)].take_outgoing()) {
      if (!is_cut(from, outgoing.rank)) links_[{from, outgoing.rank}].push_back(outgoing.message);
    }
  }

  int size_;
  std::vector<Shrinking> workers_;
  std::vector<bool> is_dead_;
  std::map<std::pair<int, int>, std::deque<Event>> links_;
  std::set<std::pair<int, int>> cut_;
};

TEST(Shrinking, AllGoOnIfNobodyFailed) {
  std::mt19937 random(1);
  World world(4);
  for (int r = 0; r < 4; ++r) world.join(r, 7 + static_cast<std::uint64_t>(r));
  world.settle(random);
  for (int r = 0; r < 4; ++r) {
    ASSERT_TRUE(world[r].decided());
    EXPECT_EQ(*world[r].decided(), *world[0].decided());
  }
  EXPECT_THAT(world[0].decided()->members, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(world[0].decided()->completed, 7U);
}

TEST(Shrinking, WhoeverLivesIsAwaited) {
  std::mt19937 random(1);
  World world(3);
  world.kill(0);
  world.join(1, 5);
  world.settle(random);
  EXPECT_FALSE(world[1].decided());
  EXPECT_THAT(world[1].awaited(), ElementsAre(2));
  world.join(2, 4);
  world.settle(random);
  ASSERT_TRUE(world[1].decided());
  EXPECT_THAT(world[2].decided()->members, ElementsAre(1, 2));
  EXPECT_EQ(world[1].decided()->completed, 4U);
}

TEST(Shrinking, WhoDoesNotComeIsLeftBehindAndTold) {
  std::mt19937 random(1);
  World world(3);
  world.join(0, 1);
  world.join(1, 1);
  world.settle(random);
  EXPECT_FALSE(world[0].decided());
  world.give_up(0, 2);
  world.settle(random);
  ASSERT_TRUE(world[0].decided());
  EXPECT_THAT(world[1].decided()->members, ElementsAre(0, 1));
  ASSERT_TRUE(world[2].decided());
  EXPECT_THAT(world[2].decided()->members, ElementsAre(0, 1));
}

TEST(Shrinking, AMinorityDoesNotGoOn) {
  std::mt19937 random(1);
  World world(4);
  for (const int near : {0, 1}) {
    for (const int far : {2, 3}) world.cut(near, far);
  }
  for (int r = 0; r < 4; ++r) world.join(r, 1);
  world.settle(random);
  ASSERT_TRUE(world[0].decided());  // half, with the lowest rank
  EXPECT_THAT(world[1].decided()->members, ElementsAre(0, 1));
  for (const int r : {2, 3}) {
    EXPECT_FALSE(world[r].decided());
    EXPECT_TRUE(world[r].lacks_majority());
  }
}

TEST(Shrinking, ProvenDeathsDoNotCount) {
  std::mt19937 random(1);
  World world(4);
  for (const int dead : {0, 1, 3}) world.kill(dead);
  world.join(2, 1);
  world.settle(random);
  ASSERT_TRUE(world[2].decided());
  EXPECT_THAT(world[2].decided()->members, ElementsAre(2));
  EXPECT_TRUE(may_go_on({1}, {Standing::kDead, Standing::kHere}));
  EXPECT_FALSE(may_go_on({1}, {Standing::kLost, Standing::kHere}));
  EXPECT_TRUE(may_go_on({0}, {Standing::kHere, Standing::kLost}));
  EXPECT_FALSE(may_go_on({0}, {Standing::kHere, Standing::kLost, Standing::kLost}));
  EXPECT_TRUE(may_go_on({0, 2}, {Standing::kHere, Standing::kLost, Standing::kHere}));
}

// One that only some can reach is not taken along, whatever its rank.
TEST(Shrinking, MembersCanReachEachOther) {
  std::mt19937 random(1);
  World world(4);
  world.cut(1, 3);
  for (int r = 0; r < 4; ++r) world.join(r, 1);
  world.settle(random);
  for (int r = 0; r < 4; ++r) {
    ASSERT_TRUE(world[r].decided()) << r;
    EXPECT_THAT(world[r].decided()->members, ElementsAre(0, 1, 2));
  }
}

TEST(Shrinking, AsManyGoOnAsCan) {
  std::mt19937 random(1);
  World world(5);
  for (const int other : {2, 3, 4}) world.cut(1, other);
  for (int r = 0; r < 5; ++r) world.join(r, 1);
  world.settle(random);
  for (int r = 0; r < 5; ++r) {
    ASSERT_TRUE(world[r].decided()) << r;
    EXPECT_THAT(world[r].decided()->members, ElementsAre(0, 2, 3, 4));
  }
}

// ---- everything, in any order

struct Case {
  unsigned seed;
  int size;
  bool cuts;  // links too, not only deaths
};

void happen(World& world, std::mt19937& random, const Case& now) {
  const int rank = static_cast<int>(random() % static_cast<unsigned>(world.size()));
  const int other = static_cast<int>(random() % static_cast<unsigned>(world.size()));
  switch (random() % 12) {
    case 0:
      if (!world.is_dead(rank)) world.kill(rank);
      break;
    case 1:
      if (now.cuts && rank != other) world.cut(rank, other);
      break;
    case 2:
    case 3:
      world.join(rank, random() % 3);
      break;
    case 4:
      if (now.cuts && !world.is_dead(rank) && rank != other) world.give_up(rank, other);
      break;
    default:
      world.step(random);
  }
}

bool is_member(const Proposal& proposal, int rank) {
  return std::ranges::find(proposal.members, rank) != proposal.members.end();
}

std::string describe(const Case& now) {
  return "seed " + std::to_string(now.seed) + ", " + std::to_string(now.size) + " workers";
}

// Those who lack a majority leave, one after the other.
World played(const Case& now) {
  std::mt19937 random(now.seed);
  World world(now.size);
  for (int i = 0; i < 15 * now.size; ++i) happen(world, random, now);
  for (int r = 0; r < now.size; ++r) world.join(r, 2);
  for (int left = -1;;) {
    world.settle(random);
    for (left = 0; left < now.size; ++left) {
      if (!world.is_dead(left) && !world[left].decided() && world[left].lacks_majority()) break;
    }
    if (left == now.size) return world;
    world.kill(left);
  }
}

// With deaths alone, whose proof is never lost: one decision, which everybody who lives has a part in. One
// that decided before it died told everybody.
TEST(Shrinking, DeathsInAnyOrder) {
  for (unsigned seed = 1; seed <= 6000; ++seed) {
    const Case now{seed, 1 + static_cast<int>(seed % 7), false};
    World world = played(now);
    std::optional<Proposal> decision;
    for (int r = 0; r < now.size; ++r) {
      if (!world.is_dead(r)) {
        ASSERT_TRUE(world[r].decided()) << describe(now) << ", worker " << r;
        ASSERT_TRUE(is_member(*world[r].decided(), r)) << describe(now) << ", worker " << r;
      }
      if (!world[r].decided()) continue;
      if (decision) {
        ASSERT_EQ(*world[r].decided(), *decision) << describe(now) << ", worker " << r;
      }
      decision = world[r].decided();
    }
  }
}

// A group is of use only if all its members have decided for it. There are never two of them, and nobody
// waits for ever.
TEST(Shrinking, CutLinksInAnyOrder) {
  int num_groups = 0;
  for (unsigned seed = 1; seed <= 6000; ++seed) {
    const Case now{seed, 2 + static_cast<int>(seed % 6), true};
    World world = played(now);
    std::set<std::uint64_t> useful;
    for (int r = 0; r < now.size; ++r) {
      if (world.is_dead(r)) continue;
      const std::optional<Proposal>& decided = world[r].decided();
      ASSERT_TRUE(decided) << describe(now) << ", worker " << r;
      const bool is_useful = std::ranges::all_of(decided->members, [&](int member) {
        const std::optional<Proposal>& theirs = world[member].decided();
        return !world.is_dead(member) && theirs && theirs->group == decided->group;
      });
      if (is_useful) useful.insert(decided->group);
    }
    ASSERT_LE(useful.size(), 1U) << describe(now);
    num_groups += static_cast<int>(useful.size());
  }
  EXPECT_GT(num_groups, 1000);  // it does happen
}

TEST(Shrinking, MessagesAsBytes) {
  const Joining joining{17, {Standing::kHere, Standing::kLost, Standing::kDead}};
  const Proposal proposal{UINT64_MAX, {0, 2}, 16};
  EXPECT_EQ(joining_from(to_bytes(joining), 3), joining);
  EXPECT_EQ(proposal_from(to_bytes(proposal), 3), proposal);
  EXPECT_EQ(assent_from(to_bytes(Assent{5})), Assent{5});
  EXPECT_EQ(decision_from(to_bytes(Decision{proposal}), 3), Decision{proposal});
  EXPECT_THROW(joining_from(to_bytes(joining), 4), Error);
  EXPECT_THROW(proposal_from(to_bytes(proposal), 2), Error);
  EXPECT_THROW(proposal_from(to_bytes(Proposal{1, {2, 0}, 0}), 3), Error);
  EXPECT_THROW(proposal_from(to_bytes(Proposal{1, {}, 0}), 3), Error);
  Bytes bytes = to_bytes(joining);
  bytes.back() = std::byte{3};
  EXPECT_THROW(joining_from(bytes, 3), Error);
}

}  // namespace
}  // namespace onesum::cluster
