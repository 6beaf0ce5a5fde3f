#include "collective/concatenate.h"

#include <map>
#include <set>
#include <utility>

#include "collective/draft.h"

namespace onesum::collective {
namespace {

class Concatenation {
 public:
  Concatenation(Draft& draft, std::int32_t on) : draft_(draft), on_(on) {
    for (std::size_t d = 0; d < draft.task().destinations.size(); ++d) {
      const std::int32_t rank = draft.rank_of(draft.task().destinations[d].device);
      results_[rank].push_back(static_cast<std::int32_t>(d));
    }
  }

  void write() {
    std::set<std::int32_t> ranks;
    for (const Source& replica : draft_.task().replicas) ranks.insert(draft_.rank_of(replica.device));
    for (const auto& [rank, results] : results_) ranks.insert(rank);
    for (const std::int32_t rank : ranks) {
      if (!draft_.writes(rank)) continue;
      const std::int32_t lane = draft_.add_lane(rank);
      if (ranks.size() > 1) draft_.find_counts(lane);
      for (std::uint32_t r = 0; r < draft_.task().replicas.size(); ++r) {
        if (rank_of_replica(r) == rank) spread(lane, rank, r);
      }
      for (std::uint32_t r = 0; r < draft_.task().replicas.size(); ++r) {
        if (rank_of_replica(r) != rank && results_.contains(rank)) collect(lane, rank, r);
      }
    }
  }

 private:
  std::int32_t rank_of_replica(std::uint32_t replica) const {
    return draft_.rank_of(draft_.task().replicas[replica].device);
  }

  Message message_of(std::uint32_t replica, std::int32_t rank) const {
    const auto first = static_cast<std::size_t>(results_.at(rank).front());
    return {draft_.task().replicas[replica].device, draft_.task().destinations[first].device,
            static_cast<std::int32_t>(replica), draft_.task().output};
  }

  void spread(std::int32_t lane, std::int32_t rank, std::uint32_t replica) {
    std::vector<std::int32_t> destinations;
    for (const auto& [other, results] : results_) {
      if (other == rank) {
        const std::vector<std::int32_t> outputs = draft_.outputs(results);
        destinations.insert(destinations.end(), outputs.begin(), outputs.end());
      } else {
        destinations.push_back(draft_.slot(0, message_of(replica, other)));
      }
    }
    const std::int32_t device = draft_.rank_of(on_) == rank ? on_ : draft_.task().replicas[replica].device;
    const std::int32_t input = draft_.input(static_cast<std::int32_t>(replica));
    draft_.finish(lane, device, {{}, {{input, 0}}, true}, {replica, 1}, destinations);
  }

  void collect(std::int32_t lane, std::int32_t rank, std::uint32_t replica) {
    const Message message = message_of(replica, rank);
    const std::int32_t view = draft_.receive(lane, 0, message, {replica, 1});
    draft_.copy(lane, message.to, view, {replica, 1}, draft_.outputs(results_.at(rank)));
    draft_.release(lane, 0, message);
  }

  Draft& draft_;
  std::int32_t on_;
  std::map<std::int32_t, std::vector<std::int32_t>> results_;  // by rank
};

}  // namespace

plan::Plan concatenate(const Topology& topology, const Task& task, std::int32_t on) {
  Cut cut;
  cut.units = {plan::SplitRule::kCounts, static_cast<std::uint32_t>(task.replicas.size())};
  Draft draft("concatenate", topology, task, cut);
  Concatenation(draft, on).write();
  return std::move(draft).take();
}

}  // namespace onesum::collective
