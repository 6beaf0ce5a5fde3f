#include "collective/one_device.h"

#include <set>
#include <utility>

#include "collective/draft.h"
#include "collective/shuffle.h"
#include "collective/terms.h"

namespace onesum::collective {
namespace {

// The user's function needs whole replicas at one place: what is in other workers is sent there, and the
// result comes back as from a shuffle.
class ByFunction {
 public:
  ByFunction(Draft& draft, std::int32_t on) : draft_(draft), on_(on), all_(draft.units(0, 0)) {}

  void write() {
    const Task& task = draft_.task();
    const std::int32_t home = draft_.rank_of(on_);
    std::set<std::int32_t> ranks = {home};
    for (const Source& replica : task.replicas) ranks.insert(draft_.rank_of(replica.device));
    for (const Target& target : task.destinations) ranks.insert(draft_.rank_of(target.device));
    for (const std::int32_t rank : ranks) {
      if (!draft_.writes(rank)) continue;
      const std::int32_t lane = draft_.add_lane(rank);
      if (rank == home) {
        call(lane);
      } else {
        send_replicas(lane, rank);
        collect(lane, rank);
      }
    }
  }

 private:
  Message replica_message(std::size_t replica) const {
    const Source& source = draft_.task().replicas[replica];
    return {source.device, on_, 1, source.element};
  }

  void send_replicas(std::int32_t lane, std::int32_t rank) {
    for (std::size_t r = 0; r < draft_.task().replicas.size(); ++r) {
      const std::int32_t device = draft_.task().replicas[r].device;
      if (draft_.rank_of(device) != rank) continue;
      const std::int32_t slot = draft_.slot(0, replica_message(r));
      draft_.copy(lane, device, draft_.input(static_cast<std::int32_t>(r)), all_, std::span(&slot, 1));
    }
  }

  std::vector<std::int32_t> results_of(std::int32_t rank) const {
    std::vector<std::int32_t> results;
    for (std::size_t d = 0; d < draft_.task().destinations.size(); ++d) {
      if (draft_.rank_of(draft_.task().destinations[d].device) == rank)
        results.push_back(static_cast<std::int32_t>(d));
    }
    return results;
  }

  Message result_message(std::int32_t first_result) const {
    const Task& task = draft_.task();
    return {on_, task.destinations[static_cast<std::size_t>(first_result)].device, 0, task.output};
  }

  // A message may hold a part of a replica at a time, the function needs all of it.
  std::int32_t collect_replica(std::int32_t lane, const Message& message) {
    const std::int32_t replica = draft_.whole_replica(on_);
    const std::int32_t view = draft_.receive(lane, 0, message, all_);
    draft_.copy(lane, on_, view, all_, std::span(&replica, 1));
    draft_.release(lane, 0, message);
    return replica;
  }

  void call(std::int32_t lane) {
    const Task& task = draft_.task();
    const std::int32_t home = draft_.rank_of(on_);
    std::vector<std::int32_t> sources;
    for (std::size_t r = 0; r < task.replicas.size(); ++r) {
      if (draft_.rank_of(task.replicas[r].device) == home) {
        sources.push_back(draft_.input(static_cast<std::int32_t>(r)));
        continue;
      }
      sources.push_back(collect_replica(lane, replica_message(r)));
    }
    const std::int32_t result = draft_.whole_replica(on_);
    draft_.call(lane, on_, sources, result);

    std::vector<std::int32_t> destinations;
    std::set<std::int32_t> told;
    for (std::size_t d = 0; d < task.destinations.size(); ++d) {
      const auto destination = static_cast<std::int32_t>(d);
      const std::int32_t rank = draft_.rank_of(task.destinations[d].device);
      if (rank == home) {
        destinations.push_back(draft_.output(destination));
      } else if (told.insert(rank).second) {
        destinations.push_back(draft_.slot(0, result_message(destination)));
      }
    }
    draft_.finish(lane, on_, {{}, {{result, 0}}, false}, all_, destinations);
  }

  void collect(std::int32_t lane, std::int32_t rank) {
    const std::vector<std::int32_t> results = results_of(rank);
    if (results.empty()) return;
    const Message message = result_message(results.front());
    const std::int32_t view = draft_.receive(lane, 0, message, all_);
    draft_.copy(lane, message.to, view, all_, draft_.outputs(results));
    draft_.release(lane, 0, message);
  }

  Draft& draft_;
  std::int32_t on_;
  plan::Chunks all_;
};

}  // namespace

plan::Plan one_device(const Topology& topology, const Task& task, std::int32_t on,
                      Accumulation accumulation) {
  Draft draft("one_device", topology, task, {});
  if (accumulation == Accumulation::kFunction) {
    draft.claim_order("accumulation_fn");
    ByFunction(draft, on).write();
  } else {
    write_shuffle(draft, level_of_devices(task), std::span(&on, 1), Sending::kUnits, 0);
  }
  return std::move(draft).take();
}

}  // namespace onesum::collective
