#include "collective/halving_doubling.h"

#include "collective/party.h"

namespace onesum::collective {
namespace {

// Units [first, first + count) of a shard.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  bool contains(const Run& other) const {
    return first <= other.first && other.first + other.count <= first + count;
  }
};

// What the member keeps at a hop: the half on its side, and what its partner keeps.
Run half(const Run& run, bool second) {
  const std::uint32_t count = run.count / 2;
  return {run.first + (second ? count : 0), count};
}

bool bit(std::size_t number, std::uint32_t position) { return ((number >> position) & 1) != 0; }

// What a member of a group holds after some hops.
Run run_after(std::size_t member, std::uint32_t hops, std::uint32_t units) {
  Run run{0, units};
  for (std::uint32_t hop = 0; hop < hops; ++hop) run = half(run, bit(member, hop));
  return run;
}

}  // namespace

// One party's part, in the order in which its lane does it.
class HalvingDoublingLane {
 public:
  HalvingDoublingLane(HalvingDoubling& scheme, Draft& draft, std::size_t party, std::uint32_t shard)
      : scheme_(scheme),
        draft_(draft),
        party_(party),
        shard_(shard),
        device_(device_of(party)),
        group_number_(group_with(scheme.groups_, party)),
        member_(party - group().first) {
    run_ = {0, scheme.units_};
    lane_ = draft.add_lane(draft.rank_of(device_));
    if (draft.scatters() || !is_folded()) terms_ = open_party(draft, lane_, scheme.level_, party, shard);
    if (draft.gathers() || !is_folded()) {
      outputs_ = draft.outputs(scheme.level_.parties[party].destinations);
    }
  }

  std::uint32_t hops() const { return group().hops; }
  bool is_folded() const { return group_number_ > 0; }

  void halve(std::uint32_t hop) {
    const std::size_t partner = partner_at(hop);
    const bool second = bit(member_, hop);
    send_terms(partner, half(run_, !second));
    run_ = half(run_, second);
    const std::size_t first = group().first + ((partner - group().first) >> hop << hop);
    receive_terms(partner, first, first + (std::size_t{1} << hop));
  }

  // Pieces of the parties beyond this group arrive at their owners.
  void receive_fold() {
    if (const auto below = owner_below()) receive_terms(*below, group().first + group().size, num_parties());
  }

  void send_fold() {
    for (const std::size_t owner : owners_above()) send_terms(owner, run_of(group_number_ - 1, owner));
    release_views();
  }

  // The finished piece goes to the results and to whoever gets it first.
  void finish() {
    draft_.finish(lane_, device_, terms_.front(), units_of(run_), where_it_goes());
    release_views();
  }

  // Of an all-gather: the own piece goes there as it is.
  void share() {
    run_ = run_of(group_number_, party_);
    if (!is_folded()) {
      draft_.copy(lane_, device_, terms_.front().leaves.front().number, units_of(run_), where_it_goes());
    }
  }

  void receive_results() {
    if (!is_folded()) return;
    for (const std::size_t owner : owners_above()) receive_result(owner, run_of(group_number_ - 1, owner));
    for (const std::size_t other : first_receivers()) send_result(other);
  }

  void close() { close_party(draft_, lane_, scheme_.level_, party_, shard_); }

  void double_up(std::uint32_t hop) {
    const std::size_t partner = partner_at(hop);
    if (hop + 1 < hops()) send_result(partner);
    receive_result(partner, run_after(partner - group().first, hop + 1, scheme_.units_));
    run_ = run_after(member_, hop, scheme_.units_);
  }

 private:
  const Group& group() const { return scheme_.groups_[group_number_]; }
  std::size_t num_parties() const { return scheme_.level_.parties.size(); }
  std::int32_t device_of(std::size_t party) const { return scheme_.level_.parties[party].device; }
  std::size_t partner_at(std::uint32_t hop) const {
    return group().first + (member_ ^ (std::size_t{1} << hop));
  }
  plan::Chunks units_of(const Run& run) const { return draft_.units(shard_, run.first, run.count); }

  // What a party of a group owns when it has halved as often as it can.
  Run run_of(std::size_t group_number, std::size_t party) const {
    const Group& of = scheme_.groups_[group_number];
    return run_after(party - of.first, of.hops, scheme_.units_);
  }

  // Of the group before: those whose pieces lie in what this party owns.
  std::vector<std::size_t> owners_above() const {
    std::vector<std::size_t> owners;
    if (!is_folded()) return owners;
    const Group& above = scheme_.groups_[group_number_ - 1];
    const Run own = run_of(group_number_, party_);
    for (std::size_t party = above.first; party < above.first + above.size; ++party) {
      if (own.contains(run_of(group_number_ - 1, party))) owners.push_back(party);
    }
    return owners;
  }

  // Of the group after: the one that owns what this party owns.
  std::optional<std::size_t> owner_below() const {
    if (group_number_ + 1 == scheme_.groups_.size()) return std::nullopt;
    const Group& below = scheme_.groups_[group_number_ + 1];
    const Run own = run_of(group_number_, party_);
    for (std::size_t party = below.first; party < below.first + below.size; ++party) {
      if (run_of(group_number_ + 1, party).contains(own)) return party;
    }
    return std::nullopt;
  }

  // The partner of the last hop, which is the first to double, and the owner below.
  std::vector<std::size_t> first_receivers() const {
    std::vector<std::size_t> receivers;
    if (hops() > 0) receivers.push_back(partner_at(hops() - 1));
    if (const auto below = owner_below()) receivers.push_back(*below);
    return receivers;
  }

  std::vector<std::int32_t> where_it_goes() {
    std::vector<std::int32_t> destinations = outputs_;
    if (!draft_.gathers()) return destinations;
    for (const std::size_t other : first_receivers()) {
      destinations.push_back(draft_.slot(shard_, result_message(party_, other)));
    }
    return destinations;
  }

  Message term_message(std::size_t from, std::size_t to, const Term& term, std::size_t number) const {
    return {device_of(from), device_of(to), static_cast<std::int32_t>(number) + 1,
            draft_.travels_in(term, scheme_.level_.narrow)};
  }
  Message result_message(std::size_t from, std::size_t to) const {
    return {device_of(from), device_of(to), 0, draft_.task().output};
  }

  void send_terms(std::size_t to, const Run& run) {
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const std::int32_t slot = draft_.slot(shard_, term_message(party_, to, terms_[t], t));
      draft_.form(lane_, device_, terms_[t], units_of(run), std::span(&slot, 1));
    }
  }

  // What the parties [first, end) have added up, from one of them, in the run at hand.
  void receive_terms(std::size_t from, std::size_t first, std::size_t end) {
    const std::vector<Term>& outline = scheme_.outlines_.of(first, end);
    for (std::size_t t = 0; t < outline.size(); ++t) {
      Term term = outline[t];
      views_.push_back(term_message(from, party_, term, t));
      term.leaves = {{draft_.receive(lane_, shard_, views_.back(), units_of(run_)), 0}};
      terms_.push_back(std::move(term));
    }
    terms_ = combined(std::move(terms_), scheme_.level_.tree);
  }

  void release_views() {
    for (const Message& message : views_) draft_.release(lane_, shard_, message);
    views_.clear();
  }

  void send_result(std::size_t to) {
    const std::int32_t slot = draft_.slot(shard_, result_message(party_, to));
    draft_.copy(lane_, device_, outputs_.front(), units_of(run_), std::span(&slot, 1));
  }

  void receive_result(std::size_t from, const Run& run) {
    const Message message = result_message(from, party_);
    const std::int32_t view = draft_.receive(lane_, shard_, message, units_of(run));
    draft_.copy(lane_, device_, view, units_of(run), outputs_);
    draft_.release(lane_, shard_, message);
  }

  HalvingDoubling& scheme_;
  Draft& draft_;
  std::size_t party_;
  std::uint32_t shard_;
  std::int32_t device_;
  std::size_t group_number_;
  std::size_t member_;
  Run run_;  // held at the moment
  std::int32_t lane_ = 0;
  std::vector<Term> terms_;
  std::vector<Message> views_;
  std::vector<std::int32_t> outputs_;
};

HalvingDoubling::HalvingDoubling(const Level& level)
    : level_(level), groups_(groups_of(level.parties.size())), outlines_(level) {
  units_ = static_cast<std::uint32_t>(groups_.front().size);
}

plan::Chunks HalvingDoubling::owned_by(std::size_t party) const {
  if (party >= groups_.front().size) return {0, 0};
  const Run run = run_after(party, groups_.front().hops, units_);
  return {run.first, run.count};
}

Script HalvingDoubling::lane(Draft& draft, std::size_t party, std::uint32_t shard) {
  HalvingDoublingLane lane(*this, draft, party, shard);
  if (draft.scatters()) {
    for (std::uint32_t hop = 0; hop < lane.hops(); ++hop) {
      lane.halve(hop);
      co_await pause;
    }
    lane.receive_fold();
    if (lane.is_folded()) {
      lane.send_fold();
    } else {
      lane.finish();
    }
  } else {
    lane.share();
  }
  co_await pause;
  if (!draft.gathers()) co_return;
  lane.receive_results();
  for (std::uint32_t hop = lane.hops(); hop-- > 0;) {
    lane.double_up(hop);
    co_await pause;
  }
  lane.close();
}

void HalvingDoubling::write(Draft& draft, std::uint32_t shard) {
  for (std::size_t party = 0; party < level_.parties.size(); ++party) {
    if (draft.writes(draft.rank_of(level_.parties[party].device))) lane(draft, party, shard).finish();
  }
}

}  // namespace onesum::collective
