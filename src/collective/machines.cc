#include "collective/machines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collective/party.h"

namespace onesum::collective {
namespace {

using plan::Chunks;

class Machines {
 public:
  Machines(Draft& draft, const Level& level, const PartiesByMachine& machines, std::uint32_t shard)
      : draft_(draft),
        level_(level),
        machines_(machines),
        rows_(count_rows(machines)),
        shard_(shard),
        results_(results_by_rank(draft, level)) {
    for (std::size_t machine = 0; machine < machines.size(); ++machine) {
      std::vector<Term> terms;
      for (const std::size_t party : machines[machine]) {
        const std::vector<Term> own = outline(level.parties[party].terms);
        most_terms_ = std::max(most_terms_, own.size());
        terms.insert(terms.end(), own.begin(), own.end());
        Member& member = members_[draft.rank_of(level.parties[party].device)];
        member.machine = machine;
        member.parties.push_back(party);
      }
      brought_.push_back(combined(std::move(terms), level.tree));
      most_terms_ = std::max(most_terms_, brought_.back().size());
    }
  }

  void write() {
    for (const auto& [rank, member] : members_) {
      if (draft_.writes(rank)) write_rank(rank, member);
    }
  }

 private:
  struct Member {  // a rank
    std::size_t machine = 0;
    std::vector<std::size_t> parties;
  };

  struct Lane {
    std::int32_t number = 0;
    std::int32_t rank = 0;
    std::size_t machine = 0;
    std::map<std::size_t, std::vector<Term>> terms;  // of the rank's parties
  };

  // What the owner of a row has of its machine's terms.
  struct HeldRow {
    std::uint32_t row = 0;
    std::vector<Term> terms;
    std::vector<Message> received;
  };

  std::uint32_t unit_number(std::uint32_t row, std::size_t machine) const {
    return row * static_cast<std::uint32_t>(machines_.size()) + static_cast<std::uint32_t>(machine);
  }
  Chunks unit(std::uint32_t row, std::size_t machine) const {
    return draft_.units(shard_, unit_number(row, machine));
  }
  Chunks whole(std::uint32_t row) const {
    return draft_.units(shard_, unit_number(row, 0), static_cast<std::uint32_t>(machines_.size()));
  }

  std::int32_t owner(std::uint32_t row, std::size_t machine) const {
    const std::vector<std::size_t>& parties = machines_[machine];
    return level_.parties[parties[row % parties.size()]].device;
  }
  std::int32_t owner_rank(std::uint32_t row, std::size_t machine) const {
    return draft_.rank_of(owner(row, machine));
  }
  // Where a rank receives results: it copies them from there, and hands them on.
  std::int32_t door(std::int32_t rank) const {
    const std::int32_t first = results_.at(rank).front();
    return draft_.task().destinations[static_cast<std::size_t>(first)].device;
  }

  void write_rank(std::int32_t rank, const Member& member) {
    Lane lane{draft_.add_lane(rank), rank, member.machine, {}};
    for (const std::size_t party : member.parties) {
      lane.terms.emplace(party, open_party(draft_, lane.number, level_, party, shard_));
    }
    send_inside(lane, member.parties.front());
    std::vector<HeldRow> held;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      if (owner_rank(row, lane.machine) == rank) held.push_back(gather(lane, row));
    }
    for (const HeldRow& row : held) send_across(lane, row);
    for (const HeldRow& row : held) add_up(lane, row);
    for (const HeldRow& row : held) hand_on(lane, row.row);
    for (std::uint32_t row = 0; row < rows_; ++row) {
      if (owner_rank(row, lane.machine) != rank) collect(lane, row);
    }
    for (const std::size_t party : member.parties) close_party(draft_, lane.number, level_, party, shard_);
  }

  // Between two devices there are terms of units (or, named after the first one, of rows), and results of
  // units.
  Message term_message(std::int32_t from, std::int32_t to, std::uint32_t number, const Term& term,
                       std::size_t which) const {
    const auto ordinal = static_cast<std::int32_t>(number * most_terms_ + which);
    return {from, to, 2 * ordinal + 1, draft_.travels_in(term, level_.narrow)};
  }
  Message inside_message(std::size_t party, std::uint32_t row, std::size_t machine, std::size_t term) const {
    const Party& from = level_.parties[party];
    return term_message(from.device, owner(row, machine), unit_number(row, 0), from.terms[term], term);
  }
  Message across_message(std::uint32_t row, std::size_t from, std::size_t to, std::size_t term) const {
    return term_message(owner(row, from), owner(row, to), unit_number(row, to), brought_[from][term], term);
  }
  Message result_message(std::int32_t from, std::uint32_t number, std::int32_t to_rank) const {
    return {from, door(to_rank), 2 * static_cast<std::int32_t>(number), draft_.task().output};
  }

  // Everyone begins with another row, so that no owner is sent to by all at once.
  void send_inside(const Lane& lane, std::size_t first_party) {
    const std::vector<std::size_t>& mates = machines_[lane.machine];
    const auto place = static_cast<std::uint32_t>(std::ranges::find(mates, first_party) - mates.begin());
    for (std::uint32_t i = 1; i <= rows_; ++i) {
      const std::uint32_t row = (place + i) % rows_;
      if (owner_rank(row, lane.machine) == lane.rank) continue;
      for (const auto& [party, own] : lane.terms) {
        for (std::size_t t = 0; t < own.size(); ++t) {
          const std::int32_t slot = draft_.slot(shard_, inside_message(party, row, lane.machine, t));
          draft_.form(lane.number, level_.parties[party].device, own[t], whole(row), std::span(&slot, 1));
        }
      }
    }
  }

  // The term that a message brings.
  Term receive(const Lane& lane, const Message& message, Chunks run, Term named) {
    named.leaves = {{draft_.receive(lane.number, shard_, message, run), 0}};
    return named;
  }

  HeldRow gather(const Lane& lane, std::uint32_t row) {
    HeldRow held{row, {}, {}};
    for (const std::size_t party : machines_[lane.machine]) {
      const auto own = lane.terms.find(party);
      if (own != lane.terms.end()) {
        held.terms.insert(held.terms.end(), own->second.begin(), own->second.end());
        continue;
      }
      const std::vector<Term>& terms = level_.parties[party].terms;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        held.received.push_back(inside_message(party, row, lane.machine, t));
        held.terms.push_back(receive(lane, held.received.back(), whole(row), terms[t]));
      }
    }
    held.terms = combined(std::move(held.terms), level_.tree);
    return held;
  }

  void send_across(const Lane& lane, const HeldRow& held) {
    for (std::size_t i = 1; i < machines_.size(); ++i) {
      const std::size_t other = (lane.machine + i) % machines_.size();
      for (std::size_t t = 0; t < held.terms.size(); ++t) {
        const std::int32_t slot = draft_.slot(shard_, across_message(held.row, lane.machine, other, t));
        draft_.form(lane.number, owner(held.row, lane.machine), held.terms[t], unit(held.row, other),
                    std::span(&slot, 1));
      }
    }
  }

  void add_up(const Lane& lane, const HeldRow& held) {
    const Chunks own = unit(held.row, lane.machine);
    std::vector<Term> terms = held.terms;
    std::vector<Message> received = held.received;
    for (std::size_t other = 0; other < machines_.size(); ++other) {
      if (other == lane.machine) continue;
      for (std::size_t t = 0; t < brought_[other].size(); ++t) {
        received.push_back(across_message(held.row, other, lane.machine, t));
        terms.push_back(receive(lane, received.back(), own, brought_[other][t]));
      }
    }
    const std::vector<Term> sums = combined(std::move(terms), level_.tree);
    draft_.finish(lane.number, owner(held.row, lane.machine), sums.front(), own,
                  where_it_goes(lane, held.row));
    for (const Message& message : received) draft_.release(lane.number, shard_, message);
  }

  // Of the unit that its machine owns: the rank's results, and a message for everyone else on the machine and
  // for the row's owner on every other one.
  std::vector<std::int32_t> where_it_goes(const Lane& lane, std::uint32_t row) {
    std::vector<std::int32_t> destinations;
    const std::int32_t from = owner(row, lane.machine);
    for (const auto& [rank, member] : members_) {
      if (rank == lane.rank) {
        const std::vector<std::int32_t> outputs = draft_.outputs(results_.at(rank));
        destinations.insert(destinations.end(), outputs.begin(), outputs.end());
      } else if (member.machine == lane.machine || owner_rank(row, member.machine) == rank) {
        const Message message = result_message(from, unit_number(row, lane.machine), rank);
        destinations.push_back(draft_.slot(shard_, message));
      }
    }
    return destinations;
  }

  // Of the row's units that other machines own.
  void hand_on(const Lane& lane, std::uint32_t row) {
    for (std::size_t other = 0; other < machines_.size(); ++other) {
      if (other == lane.machine) continue;
      const std::uint32_t number = unit_number(row, other);
      std::vector<std::int32_t> destinations = draft_.outputs(results_.at(lane.rank));
      for (const auto& [rank, member] : members_) {
        if (member.machine != lane.machine || rank == lane.rank) continue;
        destinations.push_back(draft_.slot(shard_, result_message(door(lane.rank), number, rank)));
      }
      deliver(lane, result_message(owner(row, other), number, lane.rank), unit(row, other), destinations);
    }
  }

  // Of a row that another rank of the machine owns.
  void collect(const Lane& lane, std::uint32_t row) {
    for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
      const bool is_own = machine == lane.machine;
      const std::int32_t from = is_own ? owner(row, lane.machine) : door(owner_rank(row, lane.machine));
      deliver(lane, result_message(from, unit_number(row, machine), lane.rank), unit(row, machine),
              draft_.outputs(results_.at(lane.rank)));
    }
  }

  void deliver(const Lane& lane, const Message& message, Chunks run,
               std::span<const std::int32_t> destinations) {
    const std::int32_t view = draft_.receive(lane.number, shard_, message, run);
    draft_.copy(lane.number, message.to, view, run, destinations);
    draft_.release(lane.number, shard_, message);
  }

  Draft& draft_;
  const Level& level_;
  const PartiesByMachine& machines_;
  std::uint32_t rows_;
  std::uint32_t shard_;
  std::map<std::int32_t, std::vector<std::int32_t>> results_;  // destinations by rank
  std::map<std::int32_t, Member> members_;                     // by rank
  std::vector<std::vector<Term>> brought_;                     // by machine: its terms, by name
  std::size_t most_terms_ = 1;
};

}  // namespace

PartiesByMachine parties_by_machine(const Level& level, const Topology& topology) {
  PartiesByMachine machines;
  std::map<std::int32_t, std::size_t> numbers;
  for (std::size_t p = 0; p < level.parties.size(); ++p) {
    const std::int32_t machine = topology.machine_of(topology.rank_of(level.parties[p].device));
    const std::size_t number = numbers.try_emplace(machine, machines.size()).first->second;
    if (number == machines.size()) machines.emplace_back();
    machines[number].push_back(p);
  }
  return machines;
}

std::uint32_t count_rows(const PartiesByMachine& machines) {
  std::size_t most = 0;
  for (const std::vector<std::size_t>& parties : machines) most = std::max(most, parties.size());
  return static_cast<std::uint32_t>(most);
}

void write_machines(Draft& draft, const Level& level, const PartiesByMachine& machines, std::uint32_t shard) {
  Machines(draft, level, machines, shard).write();
}

}  // namespace onesum::collective
