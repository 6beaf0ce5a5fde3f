#include "cluster/shrinking.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <onesum/error.h>

#include "base/bytes.h"

namespace onesum::cluster {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kInvalidArgument, "a message of another worker about who goes on makes no sense");
}

void write(ByteWriter& out, const Proposal& proposal) {
  out.number(proposal.group);
  out.number(proposal.completed);
  out.number(static_cast<std::uint32_t>(proposal.members.size()));
  for (const int member : proposal.members) out.number(static_cast<std::uint32_t>(member));
}

bool is_ascending(const std::vector<int>& ranks) {
  return std::ranges::adjacent_find(ranks, std::ranges::greater_equal{}) == ranks.end();
}

bool contains(const std::vector<int>& ranks, std::size_t rank) {
  return std::ranges::find(ranks, static_cast<int>(rank)) != ranks.end();
}

}  // namespace

Bytes to_bytes(const Joining& joining) {
  ByteWriter out;
  out.number(joining.completed);
  for (const Standing standing : joining.standings) out.number(static_cast<std::uint8_t>(standing));
  return out.take();
}

Joining joining_from(std::span<const std::byte> bytes, int size) {
  ByteReader in(bytes);
  Joining joining;
  joining.completed = in.number<std::uint64_t>();
  for (int r = 0; r < size; ++r) {
    const auto standing = in.number<std::uint8_t>();
    if (standing > static_cast<std::uint8_t>(Standing::kDead)) refuse();
    joining.standings.push_back(static_cast<Standing>(standing));
  }
  in.expect_end();
  return joining;
}

Bytes to_bytes(const Proposal& proposal) {
  ByteWriter out;
  write(out, proposal);
  return out.take();
}

Proposal proposal_from(std::span<const std::byte> bytes, int size) {
  ByteReader in(bytes);
  Proposal proposal;
  proposal.group = in.number<std::uint64_t>();
  proposal.completed = in.number<std::uint64_t>();
  const auto count = in.number<std::uint32_t>();
  if (count == 0 || count > static_cast<std::uint32_t>(size)) refuse();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto member = in.number<std::uint32_t>();
    if (member >= static_cast<std::uint32_t>(size)) refuse();
    proposal.members.push_back(static_cast<int>(member));
  }
  in.expect_end();
  if (!is_ascending(proposal.members)) refuse();
  return proposal;
}

Bytes to_bytes(const Assent& assent) {
  ByteWriter out;
  out.number(assent.group);
  return out.take();
}

Assent assent_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const Assent assent{in.number<std::uint64_t>()};
  in.expect_end();
  return assent;
}

Bytes to_bytes(const Decision& decision) { return to_bytes(decision.what); }

Decision decision_from(std::span<const std::byte> bytes, int size) { return {proposal_from(bytes, size)}; }

bool may_go_on(const std::vector<int>& members, const std::vector<Standing>& standings) {
  const auto voters =
      standings.size() - static_cast<std::size_t>(std::ranges::count(standings, Standing::kDead));
  if (2 * members.size() != voters) return 2 * members.size() > voters;
  const auto lowest = std::ranges::find_if(standings, [](Standing s) { return s != Standing::kDead; });
  return contains(members, static_cast<std::size_t>(lowest - standings.begin()));
}

Shrinking::Shrinking(int rank, int size, std::uint64_t random)
    : rank_(static_cast<std::size_t>(rank)),
      next_group_(random),
      standings_(static_cast<std::size_t>(size), Standing::kHere),
      given_up_(standings_.size()),
      joins_(standings_.size()),
      proposals_(standings_.size()) {}

std::vector<Shrinking::Outgoing> Shrinking::take_outgoing() { return std::exchange(outgoing_, {}); }

void Shrinking::send(int rank, std::variant<Joining, Proposal, Assent, Decision> message) {
  outgoing_.push_back({rank, std::move(message)});
}

int Shrinking::leader() const {
  for (std::size_t r = 0; r < rank_; ++r) {
    if (standings_[r] == Standing::kHere && !given_up_[r]) return static_cast<int>(r);
  }
  return static_cast<int>(rank_);
}

void Shrinking::join(std::uint64_t completed) {
  given_up_.assign(size(), false);
  if (!has_joined()) {
    joins_[rank_] = Joining{completed, standings_};
    tell_joining();
  }
  step();
}

void Shrinking::tell_joining() {
  joins_[rank_]->standings = standings_;
  for (std::size_t r = 0; r < size(); ++r) {
    if (r != rank_ && standings_[r] == Standing::kHere) send(static_cast<int>(r), *joins_[rank_]);
  }
}

void Shrinking::hear(int rank, const Joining& joining) {
  if (decided_) {
    send(rank, Decision{*decided_});
    return;
  }
  joins_[static_cast<std::size_t>(rank)] = joining;
  given_up_[static_cast<std::size_t>(rank)] = false;
  step();
}

void Shrinking::hear(int rank, const Proposal& proposal) {
  if (decided_) {
    send(rank, Decision{*decided_});
    return;
  }
  proposals_[static_cast<std::size_t>(rank)] = proposal;
  step();
}

void Shrinking::hear(int rank, const Assent& assent) {
  const std::optional<Proposal>& mine = proposals_[rank_];
  if (decided_ || !mine || mine->group != assent.group) return;
  assents_.insert(rank);
  step();
}

void Shrinking::hear(int /*rank*/, const Decision& decision) {
  if (!decided_) decide(decision.what);
}

void Shrinking::lose(int rank, Standing standing) {
  Standing& known = standings_[static_cast<std::size_t>(rank)];
  if (known != Standing::kHere) return;
  known = standing;
  if (decided_) return;
  if (has_joined()) tell_joining();
  step();
}

// Nobody has assented to one who has not joined: whoever leads joins before it proposes.
void Shrinking::give_up(int rank) {
  if (joins_[static_cast<std::size_t>(rank)]) return;
  given_up_[static_cast<std::size_t>(rank)] = true;
  step();
}

std::vector<int> Shrinking::awaited() const {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < size(); ++r) {
    if (standings_[r] == Standing::kHere && !joins_[r] && !given_up_[r]) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

std::vector<int> Shrinking::without_assent() const {
  std::vector<int> ranks;
  if (!proposals_[rank_]) return ranks;
  std::ranges::copy_if(proposals_[rank_]->members, std::back_inserter(ranks),
                       [&](int member) { return !assents_.contains(member); });
  return ranks;
}

void Shrinking::step() {
  if (decided_ || !has_joined()) return;
  const bool leads = leader() == static_cast<int>(rank_);
  const std::vector<int> most = leads && awaited().empty() ? candidates() : reachable();
  lacks_majority_ = !may_go_on(most, pooled_standings());
  if (lacks_majority_) return;
  if (leads) {
    if (awaited().empty()) propose(most);
  } else {
    assent();
  }
}

// Who could be a member at best.
std::vector<int> Shrinking::reachable() const {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < size(); ++r) {
    if (standings_[r] == Standing::kHere && !given_up_[r]) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

bool Shrinking::can_reach_each_other(int a, int b) const {
  const auto reaches = [&](int from, int to) {
    return joins_[static_cast<std::size_t>(from)]->standings[static_cast<std::size_t>(to)] == Standing::kHere;
  };
  return reaches(a, b) && reaches(b, a);
}

// Whoever cannot reach the most of the others goes first, the highest rank of several, until all can reach
// each other. The leader stays.
std::vector<int> Shrinking::candidates() const {
  std::vector<int> members;
  for (std::size_t r = 0; r < size(); ++r) {
    if (standings_[r] == Standing::kHere && joins_[r]) members.push_back(static_cast<int>(r));
  }
  for (;;) {
    int worst = -1;
    std::ptrdiff_t most = 0;
    for (const int rank : members) {
      const auto missed = std::ranges::count_if(
          members, [&](int other) { return other != rank && !can_reach_each_other(rank, other); });
      if (missed == 0 || missed < most || static_cast<std::size_t>(rank) == rank_) continue;
      worst = rank;
      most = missed;
    }
    if (worst < 0) return members;
    std::erase(members, worst);
  }
}

// A death is proven to all by whoever saw it.
std::vector<Standing> Shrinking::pooled_standings() const {
  std::vector<Standing> pooled = standings_;
  for (std::size_t from = 0; from < size(); ++from) {
    if (!joins_[from] || standings_[from] != Standing::kHere) continue;
    for (std::size_t r = 0; r < size(); ++r) {
      if (joins_[from]->standings[r] == Standing::kDead) pooled[r] = Standing::kDead;
    }
  }
  return pooled;
}

void Shrinking::propose(const std::vector<int>& members) {
  Proposal proposal{0, members, UINT64_MAX};
  for (const int member : proposal.members) {
    proposal.completed = std::min(proposal.completed, joins_[static_cast<std::size_t>(member)]->completed);
  }
  std::optional<Proposal>& mine = proposals_[rank_];
  if (!mine || mine->members != proposal.members || mine->completed != proposal.completed) {
    proposal.group = next_group_++;
    mine = proposal;
    assents_ = {static_cast<int>(rank_)};
    for (const int member : mine->members) {
      if (static_cast<std::size_t>(member) != rank_) send(member, *mine);
    }
  }
  if (std::ranges::all_of(mine->members, [&](int member) { return assents_.contains(member); })) {
    decide(*mine);
  }
}

void Shrinking::assent() {
  const int from = leader();
  const std::optional<Proposal>& proposal = proposals_[static_cast<std::size_t>(from)];
  if (!proposal || assented_ == proposal->group || !contains(proposal->members, rank_)) return;
  assented_ = proposal->group;
  send(from, Assent{proposal->group});
}

void Shrinking::decide(const Proposal& proposal) {
  decided_ = proposal;
  for (std::size_t r = 0; r < size(); ++r) {
    if (r != rank_ && standings_[r] == Standing::kHere) send(static_cast<int>(r), Decision{proposal});
  }
}

}  // namespace onesum::cluster
