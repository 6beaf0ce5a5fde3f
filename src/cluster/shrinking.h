// How the survivors of a group agree on who goes on: the same members, and the same number of calls that all
// of them have completed, everywhere.
//
//   everybody      joins: tells all others that it wants to go on, and whom it can reach
//   the leader     (the lowest rank that can be reached) awaits all it can reach, then proposes the members
//   the members    assent, if it is their leader too
//   the leader     decides when all members have assented, and tells everybody
//   everybody      passes the decision on before it goes on itself, so that one who has gone on and dies
//                  cannot leave the others behind
//
// Whenever one is lost on the way, views change, somebody else may lead, and a new proposal is made. Members
// are only such workers as can reach each other. They must be a majority of the old group, not counting those
// whose death is proven, or half of it with the lowest rank: two halves that cannot reach each other never go
// on both.
//
// Where views differ, two decisions may come to be; only one of them can be of use: a worker is in the
// decision that reached it first, and says so to the members of the other, which then have lost a member
// before their first call.
//
// A value: takes what happens, gives what is to be sent. No clock, no thread, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cluster/verdict.h"

namespace onesum::cluster {

enum class Standing : std::uint8_t {
  kHere,
  kLost,  // cannot be reached, and may live
  kDead,  // has left, or its death is proven
};

struct Joining {
  std::uint64_t completed = 0;      // calls
  std::vector<Standing> standings;  // by rank, as this worker sees them
  friend bool operator==(const Joining&, const Joining&) = default;
};

struct Proposal {
  std::uint64_t group = 0;      // the new one's id
  std::vector<int> members;     // old ranks, ascending
  std::uint64_t completed = 0;  // calls of the old group that all members have completed
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

struct Assent {
  std::uint64_t group = 0;
  friend bool operator==(const Assent&, const Assent&) = default;
};

struct Decision {
  Proposal what;
  friend bool operator==(const Decision&, const Decision&) = default;
};

Bytes to_bytes(const Joining& joining);
Bytes to_bytes(const Proposal& proposal);
Bytes to_bytes(const Assent& assent);
Bytes to_bytes(const Decision& decision);
// Of a group of `size`. Throw invalid_argument for bytes that are none.
Joining joining_from(std::span<const std::byte> bytes, int size);
Proposal proposal_from(std::span<const std::byte> bytes, int size);
Assent assent_from(std::span<const std::byte> bytes);
Decision decision_from(std::span<const std::byte> bytes, int size);

// Whether `members` may go on without the rest.
bool may_go_on(const std::vector<int>& members, const std::vector<Standing>& standings);

class Shrinking {
 public:
  struct Outgoing {
    int rank;
    std::variant<Joining, Proposal, Assent, Decision> message;
  };

  // `random` names the proposals of this worker, and must differ between workers.
  Shrinking(int rank, int size, std::uint64_t random);

  // This worker wants to go on; again, if it has given others up meanwhile.
  void join(std::uint64_t completed);
  bool has_joined() const noexcept { return joins_[rank_].has_value(); }

  void hear(int rank, const Joining& joining);
  void hear(int rank, const Proposal& proposal);
  void hear(int rank, const Assent& assent);
  void hear(int rank, const Decision& decision);
  // A worker is lost, or dead. What it was first it stays.
  void lose(int rank, Standing standing);
  // The worker has not come: it is not waited for any longer, until it comes.
  void give_up(int rank);

  // What is to be sent now, in this order.
  std::vector<Outgoing> take_outgoing();

  const std::optional<Proposal>& decided() const noexcept { return decided_; }
  int leader() const;
  // Who has to come first, and who has not assented to this worker's proposal.
  std::vector<int> awaited() const;
  std::vector<int> without_assent() const;
  // Those who can go on with this worker are too few.
  bool lacks_majority() const noexcept { return lacks_majority_; }
  const std::vector<Standing>& standings() const noexcept { return standings_; }

 private:
  std::size_t size() const noexcept { return standings_.size(); }
  void send(int rank, std::variant<Joining, Proposal, Assent, Decision> message);
  void tell_joining();
  void step();
  void propose(const std::vector<int>& members);
  void assent();
  void decide(const Proposal& proposal);
  std::vector<int> candidates() const;
  std::vector<int> reachable() const;
  bool can_reach_each_other(int a, int b) const;
  std::vector<Standing> pooled_standings() const;

  std::size_t rank_;
  std::uint64_t next_group_;
  std::vector<Standing> standings_;
  std::vector<bool> given_up_;
  std::vector<std::optional<Joining>> joins_;
  std::vector<std::optional<Proposal>> proposals_;  // the last one of each rank; as leader, one's own
  std::optional<std::uint64_t> assented_;           // to the proposal of this group
  std::set<int> assents_;                           // to one's own proposal
  std::optional<Proposal> decided_;
  bool lacks_majority_ = false;
  std::vector<Outgoing> outgoing_;
};

}  // namespace onesum::cluster
