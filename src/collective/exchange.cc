#include "collective/exchange.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "collective/party.h"

namespace onesum::collective {
namespace {

class Exchange {
 public:
  Exchange(Draft& draft, const Level& level, std::uint32_t shard)
      : draft_(draft), level_(level), shard_(shard), all_(draft.units(shard, 0)) {
    for (std::size_t p = 0; p < level.parties.size(); ++p) {
      Worker& worker = workers_[draft.rank_of(level.parties[p].device)];
      worker.parties.push_back(p);
      const std::vector<std::int32_t>& results = level.parties[p].destinations;
      worker.results.insert(worker.results.end(), results.begin(), results.end());
    }
  }

  void write() {
    for (const auto& [rank, worker] : workers_) {
      if (draft_.writes(rank)) write_worker(rank, worker);
    }
  }

 private:
  struct Worker {
    std::vector<std::size_t> parties;
    std::vector<std::int32_t> results;
  };

  std::int32_t device_of(const Worker& worker) const { return level_.parties[worker.parties.front()].device; }

  // Partial sums are never rounded to travel: their own worker would add what the others do not have.
  Message message(std::size_t party, std::size_t term, const Worker& to) const {
    return {level_.parties[party].device, device_of(to), static_cast<std::int32_t>(term),
            draft_.travels_in(level_.parties[party].terms[term], false)};
  }

  void write_worker(std::int32_t rank, const Worker& worker) {
    const std::int32_t lane = draft_.add_lane(rank);
    std::map<std::size_t, std::vector<Term>> own;
    for (const std::size_t party : worker.parties) {
      own.emplace(party, open_party(draft_, lane, level_, party, shard_));
    }
    for (const auto& [party, terms] : own) {
      for (std::size_t t = 0; t < terms.size(); ++t) send(lane, rank, party, t, terms[t]);
    }
    add_up(lane, worker, own);
    for (const std::size_t party : worker.parties) close_party(draft_, lane, level_, party, shard_);
  }

  // One pass, whoever else there is.
  void send(std::int32_t lane, std::int32_t rank, std::size_t party, std::size_t number, const Term& term) {
    std::vector<std::int32_t> slots;
    for (const auto& [other, worker] : workers_) {
      if (other != rank) slots.push_back(draft_.slot(shard_, message(party, number, worker)));
    }
    if (!slots.empty()) draft_.form(lane, level_.parties[party].device, term, all_, slots);
  }

  void add_up(std::int32_t lane, const Worker& worker, const std::map<std::size_t, std::vector<Term>>& own) {
    std::vector<Term> terms;
    std::vector<Message> received;
    for (std::size_t party = 0; party < level_.parties.size(); ++party) {
      if (const auto found = own.find(party); found != own.end()) {
        terms.insert(terms.end(), found->second.begin(), found->second.end());
        continue;
      }
      for (std::size_t t = 0; t < level_.parties[party].terms.size(); ++t) {
        received.push_back(message(party, t, worker));
        Term term = level_.parties[party].terms[t];
        term.leaves = {{draft_.receive(lane, shard_, received.back(), all_), 0}};
        terms.push_back(std::move(term));
      }
    }
    const std::vector<Term> sums = combined(std::move(terms), level_.tree);
    draft_.finish(lane, device_of(worker), sums.front(), all_, draft_.outputs(worker.results));
    for (const Message& message : received) draft_.release(lane, shard_, message);
  }

  Draft& draft_;
  const Level& level_;
  std::uint32_t shard_;
  plan::Chunks all_;
  std::map<std::int32_t, Worker> workers_;  // by rank
};

}  // namespace

void write_exchange(Draft& draft, const Level& level, std::uint32_t shard) {
  Exchange(draft, level, shard).write();
}

}  // namespace onesum::collective
