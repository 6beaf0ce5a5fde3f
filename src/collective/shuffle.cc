#include "collective/shuffle.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collective/party.h"

namespace onesum::collective {
namespace {

using plan::Chunks;

class Shuffle {
 public:
  Shuffle(Draft& draft, const Level& level, std::span<const std::int32_t> owners, Sending sending,
          std::uint32_t shard)
      : draft_(draft),
        level_(level),
        owners_(owners),
        sending_(sending),
        shard_(shard),
        results_(results_by_rank(draft, level)) {
    for (std::size_t p = 0; p < level.parties.size(); ++p) {
      parties_[draft.rank_of(level.parties[p].device)].push_back(p);
      most_terms_ = std::max(most_terms_, level.parties[p].terms.size());
    }
  }

  void write() {
    std::set<std::int32_t> ranks;
    for (const auto& [rank, parties] : parties_) ranks.insert(rank);
    for (const auto& [rank, results] : results_) ranks.insert(rank);
    for (const std::int32_t owner : owners_) {
      ranks.insert(draft_.rank_of(owner));
      doors_.try_emplace(draft_.rank_of(owner), owner);
    }
    for (const std::int32_t rank : ranks) {
      if (draft_.writes(rank)) write_rank(rank);
    }
  }

 private:
  std::uint32_t num_units() const { return static_cast<std::uint32_t>(owners_.size()); }
  Chunks unit(std::uint32_t number) const { return draft_.units(shard_, number); }
  Chunks whole() const { return draft_.units(shard_, 0, num_units()); }

  void write_rank(std::int32_t rank) {
    const std::int32_t lane = draft_.add_lane(rank);
    Terms terms;
    const auto own = parties_.find(rank);
    if (own != parties_.end()) {
      for (const std::size_t party : own->second) {
        terms.emplace(party, open_party(draft_, lane, level_, party, shard_));
      }
    }
    if (draft_.scatters()) send(lane, rank, terms);
    add_up(lane, rank, terms);
    if (!draft_.gathers()) return;
    for (std::uint32_t number = 0; number < num_units(); ++number) {
      if (owner_rank(number) != rank && results_.contains(rank)) collect(lane, rank, number);
    }
    for (const auto& [party, own_terms] : terms) close_party(draft_, lane, level_, party, shard_);
  }

  std::int32_t owner(std::uint32_t number) const { return owners_[number]; }
  std::int32_t owner_rank(std::uint32_t number) const { return draft_.rank_of(owner(number)); }
  std::uint32_t first_of(std::int32_t rank) const {
    std::uint32_t number = 0;
    while (owner_rank(number) != rank) ++number;
    return number;
  }

  // To the owner of the unit, or, whole, to the first owner on the rank.
  Message term_message(std::size_t party, std::uint32_t number, std::size_t term) const {
    const bool is_whole = sending_ == Sending::kWhole;
    const auto ordinal = static_cast<std::int32_t>((is_whole ? 0 : number) * most_terms_ + term);
    return {level_.parties[party].device, is_whole ? doors_.at(owner_rank(number)) : owner(number),
            2 * ordinal + 1, draft_.travels_in(level_.parties[party].terms[term], level_.narrow)};
  }

  Message result_message(std::uint32_t number, std::int32_t rank) const {
    const std::int32_t first = results_.at(rank).front();
    return {owner(number), draft_.task().destinations[static_cast<std::size_t>(first)].device,
            2 * static_cast<std::int32_t>(number), draft_.task().output};
  }

  using Terms = std::map<std::size_t, std::vector<Term>>;  // of a rank's parties

  void send(std::int32_t lane, std::int32_t rank, const Terms& terms) {
    if (sending_ == Sending::kWhole) return send_whole(lane, rank, terms);
    // Everyone begins with another owner, so that no owner is sent to by all at once.
    for (std::uint32_t i = 1; i <= num_units(); ++i) {
      const std::uint32_t number = (static_cast<std::uint32_t>(rank) + i) % num_units();
      if (owner_rank(number) == rank) continue;
      for (const auto& [party, own] : terms) {
        for (std::size_t t = 0; t < own.size(); ++t) {
          const std::int32_t slot = draft_.slot(shard_, term_message(party, number, t));
          draft_.form(lane, level_.parties[party].device, own[t], unit(number), std::span(&slot, 1));
        }
      }
    }
  }

  // One pass, whoever else there is.
  void send_whole(std::int32_t lane, std::int32_t rank, const Terms& terms) {
    for (const auto& [party, own] : terms) {
      for (std::size_t t = 0; t < own.size(); ++t) {
        std::vector<std::int32_t> slots;
        for (const auto& [other, door] : doors_) {
          if (other != rank) slots.push_back(draft_.slot(shard_, term_message(party, first_of(other), t)));
        }
        if (!slots.empty()) draft_.form(lane, level_.parties[party].device, own[t], whole(), slots);
      }
    }
  }

  void add_up(std::int32_t lane, std::int32_t rank, const Terms& own) {
    std::vector<Message> received;
    std::vector<Term> terms;
    for (std::uint32_t number = 0; number < num_units(); ++number) {
      if (owner_rank(number) != rank) continue;
      if (!draft_.scatters()) {  // of an all-gather, the party of this number owns the unit
        draft_.copy(lane, owner(number), own.at(number).front().leaves.front().number, unit(number),
                    where_it_goes(rank, number));
        continue;
      }
      const bool is_whole = sending_ == Sending::kWhole;
      if (terms.empty() || !is_whole) terms = terms_of_all(lane, number, own, received);
      const std::vector<Term> sums = combined(terms, level_.tree);
      draft_.finish(lane, owner(number), sums.front(), unit(number), where_it_goes(rank, number));
      if (!is_whole) release(lane, received);
    }
    release(lane, received);
  }

  std::vector<Term> terms_of_all(std::int32_t lane, std::uint32_t number, const Terms& own,
                                 std::vector<Message>& received) {
    const Chunks run = sending_ == Sending::kWhole ? whole() : unit(number);
    std::vector<Term> terms;
    for (std::size_t party = 0; party < level_.parties.size(); ++party) {
      const auto found = own.find(party);
      if (found != own.end()) {
        terms.insert(terms.end(), found->second.begin(), found->second.end());
        continue;
      }
      for (std::size_t t = 0; t < level_.parties[party].terms.size(); ++t) {
        received.push_back(term_message(party, number, t));
        Term term = level_.parties[party].terms[t];
        term.leaves = {{draft_.receive(lane, shard_, received.back(), run), 0}};
        terms.push_back(std::move(term));
      }
    }
    return terms;
  }

  void release(std::int32_t lane, std::vector<Message>& received) {
    for (const Message& message : received) draft_.release(lane, shard_, message);
    received.clear();
  }

  // The results of the owner's worker, and a message for every other worker that has some; of a
  // reduce-scatter, the owner's own result.
  std::vector<std::int32_t> where_it_goes(std::int32_t rank, std::uint32_t number) {
    std::vector<std::int32_t> destinations;
    if (!draft_.gathers()) return {draft_.output(static_cast<std::int32_t>(number))};
    for (const auto& [other, results] : results_) {
      if (other == rank) {
        const std::vector<std::int32_t> outputs = draft_.outputs(results);
        destinations.insert(destinations.end(), outputs.begin(), outputs.end());
      } else {
        destinations.push_back(draft_.slot(shard_, result_message(number, other)));
      }
    }
    return destinations;
  }

  void collect(std::int32_t lane, std::int32_t rank, std::uint32_t number) {
    const Message message = result_message(number, rank);
    const std::int32_t view = draft_.receive(lane, shard_, message, unit(number));
    draft_.copy(lane, message.to, view, unit(number), draft_.outputs(results_.at(rank)));
    draft_.release(lane, shard_, message);
  }

  Draft& draft_;
  const Level& level_;
  std::span<const std::int32_t> owners_;
  Sending sending_;
  std::uint32_t shard_;
  std::map<std::int32_t, std::int32_t> doors_;                 // the first owner of each rank that has one
  std::map<std::int32_t, std::vector<std::int32_t>> results_;  // destinations by rank
  std::map<std::int32_t, std::vector<std::size_t>> parties_;   // by rank
  std::size_t most_terms_ = 1;
};

}  // namespace

void write_shuffle(Draft& draft, const Level& level, std::span<const std::int32_t> owners, Sending sending,
                   std::uint32_t shard) {
  Shuffle(draft, level, owners, sending, shard).write();
}

std::vector<std::int32_t> owner_group(std::span<const std::int32_t> devices, std::size_t units,
                                      std::size_t pack_number) {
  const std::size_t groups = (devices.size() + units - 1) / units;
  const std::size_t group = pack_number % groups;
  std::vector<std::int32_t> owners;
  for (std::size_t i = 0; i < units; ++i) owners.push_back(devices[(group + i * groups) % devices.size()]);
  return owners;
}

}  // namespace onesum::collective
