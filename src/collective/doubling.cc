#include "collective/doubling.h"

#include <utility>
#include <vector>

#include "collective/folding.h"
#include "collective/party.h"

namespace onesum::collective {
namespace {

struct Doubling {
  explicit Doubling(const Level& of) : level(of), groups(groups_of(of.parties.size())), outlines(of) {}

  const Level& level;
  std::vector<Group> groups;
  Outlines outlines;
};

// One party's part, in the order in which its lane does it.
class Lane {
 public:
  Lane(Doubling& scheme, Draft& draft, std::size_t party, std::uint32_t shard)
      : scheme_(scheme),
        draft_(draft),
        party_(party),
        shard_(shard),
        device_(device_of(party)),
        all_(draft.units(shard, 0)),
        group_number_(group_with(scheme.groups, party)),
        member_(party - group().first),
        lane_(draft.add_lane(draft.rank_of(device_))),
        terms_(open_party(draft, lane_, scheme.level, party, shard)),
        outputs_(draft.outputs(scheme.level.parties[party].destinations)) {}

  void write() {
    for (std::uint32_t hop = 0; hop < group().hops; ++hop) exchange(hop);
    receive_fold();
    if (group_number_ == 0) {
      finish();
    } else {
      send_terms(partners_above());
      receive_result();
    }
    for (const Message& message : views_) draft_.release(lane_, shard_, message);
    close_party(draft_, lane_, scheme_.level, party_, shard_);
  }

 private:
  const Group& group() const { return scheme_.groups[group_number_]; }
  std::size_t num_parties() const { return scheme_.level.parties.size(); }
  std::int32_t device_of(std::size_t party) const { return scheme_.level.parties[party].device; }

  // Partial sums are never rounded to travel: who sends them adds what the others do not have.
  Message term_message(std::size_t from, std::size_t to, const Term& term, std::size_t number) const {
    return {device_of(from), device_of(to), static_cast<std::int32_t>(number) + 1,
            draft_.travels_in(term, false)};
  }
  Message result_message(std::size_t from, std::size_t to) const {
    return {device_of(from), device_of(to), 0, draft_.task().output};
  }

  void exchange(std::uint32_t hop) {
    const std::size_t partner = member_ ^ (std::size_t{1} << hop);
    send_terms({group().first + partner});
    const std::size_t first = group().first + (partner >> hop << hop);
    receive_terms(group().first + partner, first, first + (std::size_t{1} << hop));
  }

  // What the parties beyond this group have.
  void receive_fold() {
    if (group_number_ + 1 == scheme_.groups.size()) return;
    const Group& below = scheme_.groups[group_number_ + 1];
    receive_terms(below.first + member_ % below.size, below.first, num_parties());
  }

  // Of the group before: those that get from this party what those beyond them have.
  std::vector<std::size_t> partners_above() const {
    const Group& above = scheme_.groups[group_number_ - 1];
    std::vector<std::size_t> partners;
    for (std::size_t member = member_; member < above.size; member += group().size) {
      partners.push_back(above.first + member);
    }
    return partners;
  }

  // One pass for each term, whoever gets it.
  void send_terms(const std::vector<std::size_t>& to) {
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      std::vector<std::int32_t> slots;
      slots.reserve(to.size());
      for (const std::size_t other : to) {
        slots.push_back(draft_.slot(shard_, term_message(party_, other, terms_[t], t)));
      }
      draft_.form(lane_, device_, terms_[t], all_, slots);
    }
  }

  // What the parties [first, end) have added up, from one of them.
  void receive_terms(std::size_t from, std::size_t first, std::size_t end) {
    const std::vector<Term>& outline = scheme_.outlines.of(first, end);
    for (std::size_t t = 0; t < outline.size(); ++t) {
      Term term = outline[t];
      views_.push_back(term_message(from, party_, term, t));
      term.leaves = {{draft_.receive(lane_, shard_, views_.back(), all_), 0}};
      terms_.push_back(std::move(term));
    }
    terms_ = combined(std::move(terms_), scheme_.level.tree);
  }

  // The sum goes to the results, and to the one party beyond the group that gets it from here.
  void finish() {
    std::vector<std::int32_t> destinations = outputs_;
    const std::size_t beyond = party_ + group().size;
    if (beyond < num_parties()) destinations.push_back(draft_.slot(shard_, result_message(party_, beyond)));
    draft_.finish(lane_, device_, terms_.front(), all_, destinations);
  }

  void receive_result() {
    const Message message = result_message(party_ - scheme_.groups.front().size, party_);
    const std::int32_t view = draft_.receive(lane_, shard_, message, all_);
    draft_.copy(lane_, device_, view, all_, outputs_);
    draft_.release(lane_, shard_, message);
  }

  Doubling& scheme_;
  Draft& draft_;
  std::size_t party_;
  std::uint32_t shard_;
  std::int32_t device_;
  plan::Chunks all_;
  std::size_t group_number_;
  std::size_t member_;
  std::int32_t lane_;
  std::vector<Term> terms_;
  std::vector<std::int32_t> outputs_;
  std::vector<Message> views_;
};

}  // namespace

void write_doubling(Draft& draft, const Level& level, std::uint32_t shard) {
  Doubling scheme(level);
  for (std::size_t party = 0; party < level.parties.size(); ++party) {
    if (draft.writes(draft.rank_of(level.parties[party].device))) Lane(scheme, draft, party, shard).write();
  }
}

}  // namespace onesum::collective
