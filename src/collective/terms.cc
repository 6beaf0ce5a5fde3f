#include "collective/terms.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace onesum::collective {

Term sum_of(Term left, const Term& right) {
  left.block.end = right.block.end;
  left.raw = false;
  left.leaves.insert(left.leaves.end(), right.leaves.begin(), right.leaves.end());
  if (!left.leaves.empty()) ++left.leaves.back().merges;
  return left;
}

std::vector<Term> combined(std::vector<Term> terms, std::size_t tree) {
  std::ranges::sort(terms, {}, [](const Term& term) { return term.block.begin; });
  std::vector<Term> stack;
  for (Term& term : terms) {
    stack.push_back(std::move(term));
    while (stack.size() > 1 && plan::are_siblings(stack[stack.size() - 2].block, stack.back().block, tree)) {
      const Term right = std::move(stack.back());
      stack.pop_back();
      stack.back() = sum_of(std::move(stack.back()), right);
    }
  }
  return stack;
}

std::vector<Term> outline(std::span<const Term> terms) {
  std::vector<Term> outlined;
  outlined.reserve(terms.size());
  for (const Term& term : terms) outlined.push_back({term.block, {}, term.raw});
  return outlined;
}

namespace {

Term term_of(std::size_t replica) {
  return {{replica, replica + 1}, {{static_cast<std::int32_t>(replica), 0}}, true};
}

// The sum of some replicas in the canonical order over these alone.
Term one_sum_of(const std::vector<std::size_t>& replicas) {
  const std::vector<std::uint8_t> merges = plan::canonical_merges(replicas.size());
  Term sum;
  sum.raw = replicas.size() == 1;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    sum.leaves.push_back({static_cast<std::int32_t>(replicas[i]), merges[i]});
  }
  return sum;
}

std::vector<Term> terms_of(const std::vector<std::size_t>& replicas, std::size_t tree) {
  std::vector<Term> terms;
  std::ranges::transform(replicas, std::back_inserter(terms), term_of);
  return combined(std::move(terms), tree);
}

}  // namespace

Level level_of_devices(const Task& task) {
  Level level;
  level.tree = task.replicas.size();
  for (std::size_t r = 0; r < task.replicas.size(); ++r) {
    level.parties.push_back({task.replicas[r].device, {term_of(r)}, {}});
  }
  for (std::size_t d = 0; d < task.destinations.size(); ++d) {
    const auto party = std::ranges::find(level.parties, task.destinations[d].device,
                                         [](const Party& p) { return p.device; });
    if (party != level.parties.end()) party->destinations.push_back(static_cast<std::int32_t>(d));
  }
  return level;
}

Level level_of_workers(const Task& task, const Topology& topology, Leader leader, bool one_sum) {
  std::map<std::int32_t, std::vector<std::size_t>> replicas;  // by rank
  for (std::size_t r = 0; r < task.replicas.size(); ++r) {
    replicas[topology.rank_of(task.replicas[r].device)].push_back(r);
  }
  Level level;
  level.tree = task.replicas.size();
  for (const auto& [rank, own] : replicas) {
    Party party;
    party.device = leader == Leader::kHost ? topology.hosts[static_cast<std::size_t>(rank)]
                                           : task.replicas[own.front()].device;
    party.terms = terms_of(own, level.tree);
    for (std::size_t d = 0; d < task.destinations.size(); ++d) {
      if (topology.rank_of(task.destinations[d].device) == rank) {
        party.destinations.push_back(static_cast<std::int32_t>(d));
      }
    }
    level.canonical = level.canonical && party.terms.size() == 1;
    level.parties.push_back(std::move(party));
  }
  if (level.canonical || !one_sum) {
    level.canonical = true;
    return level;
  }
  level.tree = level.parties.size();
  std::size_t number = 0;
  for (auto& [rank, own] : replicas) {
    Term sum = one_sum_of(own);
    sum.block = {number, number + 1};
    level.parties[number].terms = {std::move(sum)};
    ++number;
  }
  return level;
}

}  // namespace onesum::collective
