// One pack of a plan while an algorithm writes it: buffers, messages and sums by what they mean.
//
// An algorithm writes the lanes of every rank, or of one rank only: what a rank does never depends on what
// was written for another, so its part can be had without the rest. The pack is cut into `shards`, each of
// them into units of an algorithm's own, each of these into `grain` chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collective/task.h"
#include "collective/terms.h"
#include "plan/builder.h"
#include "plan/plan.h"

namespace onesum::collective {

// How an algorithm's pack is cut: a level of shards, a level of units, and inside each `grain` chunks.
struct Cut {
  std::uint32_t shards = 1;
  plan::SplitLevel units;
  std::uint32_t grain = 1;
};

// One message: what travels once on a channel of its own.
struct Message {
  std::int32_t from = 0;  // devices
  std::int32_t to = 0;
  std::int32_t number = 0;  // among those of a shard between the two
  Element element = Element::kFloat32;
};

// What was written for a party that is summed natively (collective/native.h).
struct NativeParty {
  plan::StepRef reduce;
  std::vector<plan::StepRef> ends;  // the last step of its lane, of every shard but the first
};

class Draft {
 public:
  // The topology and the task outlive it. `only_rank`: the others' lanes are left out.
  Draft(std::string algorithm, const Topology& topology, const Task& task, const Cut& cut,
        std::optional<std::int32_t> only_rank = {});

  // An all-reduce, or one half of it.
  bool scatters() const noexcept { return task_.contract != plan::Contract::kConcatenate; }
  bool gathers() const noexcept { return task_.contract != plan::Contract::kScatter; }
  // Of the halves: the chunks that the result, or the replica, of this number has.
  void set_window(std::int32_t number, plan::Chunks window) { windows_[number] = window; }

  const Task& task() const noexcept { return task_; }
  const Cut& cut() const noexcept { return cut_; }
  std::int32_t rank_of(std::int32_t device) const { return topology_.rank_of(device); }
  bool writes(std::int32_t rank) const { return !only_rank_ || *only_rank_ == rank; }

  std::int32_t add_lane(std::int32_t rank) { return builder_.add_lane(rank); }
  plan::Chunks units(std::uint32_t shard, std::uint32_t first, std::uint32_t count = 1) const;

  std::int32_t input(std::int32_t replica);
  std::int32_t output(std::int32_t destination);
  std::vector<std::int32_t> outputs(std::span<const std::int32_t> destinations);
  std::int32_t temporary(std::int32_t device, plan::Chunks run);  // in the accumulator's type

  // The type in which a term travels.
  Element travels_in(const Term& term, bool narrow) const;

  // The term with its replicas' buffers as leaves.
  Term bound(const Term& term);

  // Messages of a shard. A slot is a destination of the step that sends; `receive` returns the view. Who
  // receives on one channel again and again asks for its end once.
  struct ReceivingEnd {
    std::int32_t channel = -1;
    std::int32_t view = -1;
  };
  std::int32_t slot(std::uint32_t shard, const Message& message);
  ReceivingEnd receiving_end(std::uint32_t shard, const Message& message);
  void receive(std::int32_t lane, const ReceivingEnd& end, plan::Chunks run);
  void release(std::int32_t lane, const ReceivingEnd& end) { builder_.release(lane, end.channel); }
  std::int32_t receive(std::int32_t lane, std::uint32_t shard, const Message& message, plan::Chunks run);
  void release(std::int32_t lane, std::uint32_t shard, const Message& message);

  // Every destination = the sum of a bound term, formed in the task's accumulator and stored as a partial sum
  // of the destinations' one type.
  void form(std::int32_t lane, std::int32_t device, const Term& term, plan::Chunks run,
            std::span<const std::int32_t> destinations);
  // The same with what makes it a result: divided, and rounded to the task's output type.
  void finish(std::int32_t lane, std::int32_t device, const Term& term, plan::Chunks run,
              std::span<const std::int32_t> destinations);
  // Every destination = a buffer of the same type.
  void copy(std::int32_t lane, std::int32_t device, std::int32_t source, plan::Chunks run,
            std::span<const std::int32_t> destinations);
  // The one destination = the user's function of these buffers.
  void call(std::int32_t lane, std::int32_t device, std::span<const std::int32_t> sources,
            std::int32_t destination);
  // A buffer for a whole replica, or for what the function gives in its place.
  std::int32_t whole_replica(std::int32_t device);

  // Every destination = the native collective of these buffers and of what other ranks bring, over a group of
  // devices. Returns the step.
  plan::StepRef native(std::int32_t lane, plan::Collective collective, std::vector<std::int32_t> group,
                       plan::Chunks run, std::span<const std::int32_t> sources,
                       std::span<const std::int32_t> destinations);
  NativeParty& native_party(std::size_t party) { return native_parties_[party]; }

  void wait(std::int32_t lane, plan::StepRef step) { builder_.wait(lane, step.lane, step.step); }
  plan::StepRef last_step(std::int32_t lane) const;
  plan::Chunks all_chunks() const { return builder_.all_chunks(0); }

  // From here on the lane's rank knows how long the parts of a concatenation are.
  void find_counts(std::int32_t lane) { builder_.counts(lane, 0); }

  void claim_order(std::string order) { builder_.claim_order(std::move(order)); }
  plan::Plan take() && { return std::move(builder_).take(); }

  // For plans that are never stored: what was written, all of it in one lane, and to drop it.
  const plan::Plan& written() const noexcept { return builder_.plan(); }
  void drop_written(std::int32_t lane) { builder_.drop_steps(lane); }

 private:
  Element element_of(std::int32_t buffer) const { return elements_[static_cast<std::size_t>(buffer)]; }
  std::int32_t noted(std::int32_t buffer, Element element);
  void write(std::int32_t lane, std::int32_t device, const Term& term, plan::Chunks run,
             std::span<const std::int32_t> destinations, std::int64_t divisor);

  const Topology& topology_;
  const Task& task_;
  Cut cut_;
  std::optional<std::int32_t> only_rank_;
  plan::Builder builder_;
  std::unordered_map<std::int32_t, std::int32_t> inputs_, outputs_;  // by replica, by destination
  std::unordered_map<std::int32_t, std::int32_t> replaced_by_;       // replica -> destination, in place
  std::unordered_map<std::size_t, NativeParty> native_parties_;      // by party
  std::unordered_map<std::int32_t, plan::Chunks> windows_;           // of replicas or results of a half
  struct Line {
    std::int32_t channel = -1;
    std::int32_t slot = -1;
    std::int32_t view = -1;
  };
  Line& line(std::uint32_t shard, const Message& message);
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::int32_t, Line>>> lines_;  // by from and to
  std::vector<Element> elements_;                                                        // of each buffer
  std::vector<plan::Operand> targets_, sources_;  // of the step at hand
};

}  // namespace onesum::collective
