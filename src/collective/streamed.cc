#include "collective/streamed.h"

#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "collective/all_reduce_writer.h"
#include "collective/draft.h"

namespace onesum::collective {
namespace {

constexpr std::size_t kMostPartiesToStore = 512;

// A lane whose script is resumed whenever more of it is wanted.
class ScriptStream final : public plan::LaneStream {
 public:
  ScriptStream(AllReduceWriter& writer, const Topology& topology, const Task& task, std::size_t position,
               std::uint32_t shard)
      : writer_(writer), topology_(topology), task_(task), position_(position), shard_(shard) {}

  bool next(plan::Stretch& stretch) override {
    if (!draft_) {
      draft_.emplace("", topology_, task_, writer_.cut(), writer_.rank_at(position_, shard_));
      script_.emplace(writer_.script(*draft_, position_, shard_));
    } else {
      draft_->drop_written();
    }
    while (script_->resume()) {
      const plan::Plan& part = draft_->written();
      if (part.lanes.front().steps.empty()) continue;
      stretch = {&part, part.lanes.front().steps};
      return true;
    }
    return false;
  }

 private:
  AllReduceWriter& writer_;
  const Topology& topology_;
  const Task& task_;
  std::size_t position_;
  std::uint32_t shard_;
  std::optional<Draft> draft_;
  std::optional<Script> script_;
};

// A lane of a stored plan.
class StoredStream final : public plan::LaneStream {
 public:
  StoredStream(const plan::Plan& plan, std::size_t lane) : plan_(plan), lane_(lane) {}

  bool next(plan::Stretch& stretch) override {
    if (std::exchange(is_done_, true)) return false;
    stretch = {&plan_, plan_.lanes[lane_].steps};
    return true;
  }

 private:
  const plan::Plan& plan_;
  std::size_t lane_;
  bool is_done_ = false;
};

}  // namespace

struct StreamedAllReduce::State {
  State(Topology of, Task what, const Scheme& scheme)
      : topology(std::move(of)), task(std::move(what)), writer(topology, task, scheme) {}

  Topology topology;
  Task task;
  AllReduceWriter writer;
  plan::Plan stored;  // only if it cannot be streamed
  std::vector<std::unique_ptr<plan::LaneStream>> streams;
  std::vector<plan::TimelineLane> lanes;

  void add(std::int32_t rank, std::unique_ptr<plan::LaneStream> stream) {
    lanes.push_back({rank, stream.get(), 0, false});
    streams.push_back(std::move(stream));
  }
};

StreamedAllReduce::StreamedAllReduce(Topology topology, Task task, const Scheme& scheme)
    : state_(std::make_unique<State>(std::move(topology), std::move(task), scheme)) {
  State& state = *state_;
  const std::size_t parties = state.writer.num_parties();
  if (state.writer.has_scripts()) {
    for (std::uint32_t shard = 0; shard < state.writer.cut().shards; ++shard) {
      for (std::size_t p = 0; p < parties; ++p) {
        state.add(state.writer.rank_at(p, shard),
                  std::make_unique<ScriptStream>(state.writer, state.topology, state.task, p, shard));
      }
    }
    return;
  }
  if (parties > kMostPartiesToStore) {
    throw Error(ErrorCode::kInvalidArgument, to_string(scheme) + " over " + std::to_string(parties) +
                                                 " has too many messages to be looked at; " +
                                                 "expected at most " + std::to_string(kMostPartiesToStore) +
                                                 ", or xring or rechd");
  }
  state.stored = all_reduce(state.topology, state.task, scheme);
  for (std::size_t lane = 0; lane < state.stored.lanes.size(); ++lane) {
    state.add(state.stored.lanes[lane].rank, std::make_unique<StoredStream>(state.stored, lane));
  }
}

StreamedAllReduce::~StreamedAllReduce() = default;

std::string StreamedAllReduce::order() const { return state_->writer.order(); }

std::span<const plan::TimelineLane> StreamedAllReduce::lanes() const noexcept { return state_->lanes; }

}  // namespace onesum::collective
