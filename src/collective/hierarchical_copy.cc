#include "collective/hierarchical_copy.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "collective/party.h"

namespace onesum::collective {
namespace {

class HierarchicalCopy {
 public:
  HierarchicalCopy(Draft& draft, const Level& level, std::size_t pack_number, std::uint32_t shard)
      : draft_(draft),
        level_(level),
        shard_(shard),
        run_(draft.units(shard, 0)),
        border_(level.parties.size() > 1 ? std::bit_floor(level.parties.size() - 1) : 1),
        roots_(roots_of(level.parties.size(), pack_number)) {}

  void write() {
    std::set<std::int32_t> ranks;
    for (const Party& party : level_.parties) ranks.insert(draft_.rank_of(party.device));
    for (const std::int32_t rank : ranks) {
      if (draft_.writes(rank)) write_rank(rank);
    }
  }

 private:
  void write_rank(std::int32_t rank) {
    rank_ = rank;
    lane_ = draft_.add_lane(rank);
    own_.clear();
    for (std::size_t p = 0; p < level_.parties.size(); ++p) {
      if (is_here(p)) own_.emplace(p, open_party(draft_, lane_, level_, p, shard_));
    }
    send_to_roots();
    std::vector<Term> second_half;
    if (has_two_halves() && is_here(roots_.second)) second_half = sum_second_half();
    if (is_here(roots_.first)) finish(std::move(second_half));
    if (has_two_halves()) {
      if (is_here(roots_.second)) pass_on_second_half();
      collect(roots_.second);
    }
    collect(roots_.first);
    for (const auto& [party, terms] : own_) close_party(draft_, lane_, level_, party, shard_);
  }

  bool is_here(std::size_t party) const { return draft_.rank_of(device(party)) == rank_; }
  std::int32_t device(std::size_t party) const { return level_.parties[party].device; }
  bool has_two_halves() const { return roots_.first != roots_.second; }

  // The parties of a root's half.
  std::pair<std::size_t, std::size_t> half_of(std::size_t root) const {
    if (!has_two_halves()) return {0, level_.parties.size()};
    return root < border_ ? std::pair(std::size_t{0}, border_) : std::pair(border_, level_.parties.size());
  }
  std::size_t root_of(std::size_t party) const {
    return (party < border_) == (roots_.first < border_) ? roots_.first : roots_.second;
  }

  Message term_message(std::size_t from, std::size_t to, const Term& term, std::size_t number) const {
    return {device(from), device(to), static_cast<std::int32_t>(number) + 1,
            draft_.travels_in(term, level_.narrow)};
  }
  Message result_message(std::size_t from, std::size_t to) const {
    return {device(from), device(to), 0, draft_.task().output};
  }

  void send_terms(std::size_t from, std::size_t to, const std::vector<Term>& terms) {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const std::int32_t slot = draft_.slot(shard_, term_message(from, to, terms[t], t));
      draft_.form(lane_, device(from), terms[t], run_, std::span(&slot, 1));
    }
  }

  // Appends what another party sends, and notes what has to be released.
  void receive_terms(std::size_t from, std::size_t to, const std::vector<Term>& outlined,
                     std::vector<Term>& terms, std::vector<Message>& views) {
    for (std::size_t t = 0; t < outlined.size(); ++t) {
      views.push_back(term_message(from, to, outlined[t], t));
      Term term = outlined[t];
      term.leaves = {{draft_.receive(lane_, shard_, views.back(), run_), 0}};
      terms.push_back(std::move(term));
    }
  }

  void release(const std::vector<Message>& views) {
    for (const Message& message : views) draft_.release(lane_, shard_, message);
  }

  void send_to_roots() {
    for (const auto& [party, terms] : own_) {
      if (!is_here(root_of(party))) send_terms(party, root_of(party), terms);
    }
  }

  // All terms of a root's half, at the root.
  void gather_half(std::size_t root, std::vector<Term>& terms, std::vector<Message>& views) {
    const auto [first, end] = half_of(root);
    for (std::size_t party = first; party < end; ++party) {
      const auto own = own_.find(party);
      if (own != own_.end()) {
        terms.insert(terms.end(), own->second.begin(), own->second.end());
      } else {
        receive_terms(party, root, level_.parties[party].terms, terms, views);
      }
    }
  }

  // The second half's sums: sent to the first root, or kept for it in temporaries of the same worker.
  std::vector<Term> sum_second_half() {
    std::vector<Term> terms;
    std::vector<Message> views;
    gather_half(roots_.second, terms, views);
    terms = combined(std::move(terms), level_.tree);
    if (!is_here(roots_.first)) {
      send_terms(roots_.second, roots_.first, terms);
      terms.clear();
    } else {
      for (Term& term : terms) {
        if (term.leaves.size() == 1 && views.empty()) continue;  // memory of this worker already
        const std::int32_t sum = draft_.temporary(device(roots_.second), run_);
        draft_.form(lane_, device(roots_.second), term, run_, std::span(&sum, 1));
        term.leaves = {{sum, 0}};
        term.raw = false;
      }
    }
    release(views);
    return terms;
  }

  std::vector<Term> outline_of_second_half() const {
    const auto [first, end] = half_of(roots_.second);
    std::vector<Term> terms;
    for (std::size_t party = first; party < end; ++party) {
      const std::vector<Term> own = outline(level_.parties[party].terms);
      terms.insert(terms.end(), own.begin(), own.end());
    }
    return combined(std::move(terms), level_.tree);
  }

  void finish(std::vector<Term> second_half) {
    std::vector<Term> terms = std::move(second_half);
    std::vector<Message> views;
    gather_half(roots_.first, terms, views);
    if (has_two_halves() && !is_here(roots_.second)) {
      receive_terms(roots_.second, roots_.first, outline_of_second_half(), terms, views);
    }
    std::vector<std::int32_t> destinations = results_of_half(roots_.first);
    if (has_two_halves()) {
      if (is_here(roots_.second)) {
        append(destinations, draft_.outputs(level_.parties[roots_.second].destinations));
      } else {
        destinations.push_back(draft_.slot(shard_, result_message(roots_.first, roots_.second)));
      }
    }
    const std::vector<Term> sums = combined(std::move(terms), level_.tree);
    draft_.finish(lane_, device(roots_.first), sums.front(), run_, destinations);
    release(views);
  }

  static void append(std::vector<std::int32_t>& list, const std::vector<std::int32_t>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  // Where a root's half gets its results: this worker's memory, and a message for every other worker.
  std::vector<std::int32_t> results_of_half(std::size_t root) {
    std::vector<std::int32_t> destinations;
    std::set<std::int32_t> told;
    const auto [first, end] = half_of(root);
    for (std::size_t party = first; party < end; ++party) {
      if (is_here(party)) {
        append(destinations, draft_.outputs(level_.parties[party].destinations));
      } else if (told.insert(draft_.rank_of(device(party))).second) {
        destinations.push_back(draft_.slot(shard_, result_message(root, party)));
      }
    }
    return destinations;
  }

  void pass_on_second_half() {
    std::vector<std::int32_t> destinations = results_of_half(roots_.second);
    const std::int32_t from = device(roots_.second);
    if (is_here(roots_.first)) {  // the root's own results are there already
      const std::vector<std::int32_t> own = draft_.outputs(level_.parties[roots_.second].destinations);
      std::erase_if(destinations,
                    [&](std::int32_t buffer) { return std::ranges::find(own, buffer) != own.end(); });
      draft_.copy(lane_, from, own.front(), run_, destinations);
      return;
    }
    const Message message = result_message(roots_.first, roots_.second);
    const std::int32_t view = draft_.receive(lane_, shard_, message, run_);
    draft_.copy(lane_, from, view, run_, destinations);
    draft_.release(lane_, shard_, message);
  }

  // The results of this worker's parties in the half of a root that is elsewhere.
  void collect(std::size_t root) {
    if (is_here(root)) return;
    std::vector<std::int32_t> results;
    std::size_t told = level_.parties.size();
    const auto [first, end] = half_of(root);
    for (std::size_t party = first; party < end; ++party) {
      if (!is_here(party)) continue;
      told = std::min(told, party);
      append(results, draft_.outputs(level_.parties[party].destinations));
    }
    if (results.empty()) return;
    const Message message = result_message(root, told);
    const std::int32_t view = draft_.receive(lane_, shard_, message, run_);
    draft_.copy(lane_, device(told), view, run_, results);
    draft_.release(lane_, shard_, message);
  }

  Draft& draft_;
  const Level& level_;
  std::uint32_t shard_;
  plan::Chunks run_;
  std::size_t border_;
  Roots roots_;
  // The rank at hand.
  std::int32_t rank_ = 0;
  std::int32_t lane_ = 0;
  std::map<std::size_t, std::vector<Term>> own_;
};

}  // namespace

Roots roots_of(std::size_t parties, std::size_t pack_number) {
  if (parties == 1) return {0, 0};
  const std::size_t border = std::bit_floor(parties - 1);
  const std::size_t first = pack_number % parties;
  return {first, first < border ? border + first % (parties - border) : first - border};
}

void write_hierarchical_copy(Draft& draft, const Level& level, std::size_t pack_number, std::uint32_t shard) {
  HierarchicalCopy(draft, level, pack_number, shard).write();
}

}  // namespace onesum::collective
