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

// What the scripts of all lanes write on, one after the other: it holds the stretch written last, in memory
// that stays in the caches.
struct Sheet {
  AllReduceWriter& writer;
  Draft draft;
  std::int32_t last_lane = -1;
};

// A lane whose script is resumed whenever more of it is wanted.
class ScriptStream final : public plan::LaneStream {
 public:
  ScriptStream(Sheet& sheet, std::size_t position, std::uint32_t shard)
      : sheet_(sheet), position_(position), shard_(shard) {}

  bool next(plan::Stretch& stretch) override {
    const plan::Plan& part = sheet_.draft.written();
    if (sheet_.last_lane >= 0) sheet_.draft.drop_written(sheet_.last_lane);
    if (!script_) {
      lane_ = static_cast<std::int32_t>(part.lanes.size());  // the one that the script is going to add
      script_.emplace(sheet_.writer.script(sheet_.draft, position_, shard_));
    }
    sheet_.last_lane = lane_;
    while (script_->resume()) {
      stretch = {&part, part.lane(lane_).steps};
      if (!stretch.steps.empty()) return true;
    }
    return false;
  }

 private:
  Sheet& sheet_;
  std::size_t position_;
  std::uint32_t shard_;
  std::int32_t lane_ = -1;
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
  std::optional<Sheet> sheet;  // only if it can be streamed
  plan::Plan stored;           // only if it cannot
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
    state.sheet.emplace(state.writer, Draft("", state.topology, state.task, state.writer.cut()));
    for (std::uint32_t shard = 0; shard < state.writer.cut().shards; ++shard) {
      for (std::size_t p = 0; p < parties; ++p) {
        state.add(state.writer.rank_at(p, shard), std::make_unique<ScriptStream>(*state.sheet, p, shard));
      }
    }
    return;
  }
  const bool is_short = state.writer.native() == AllReduceWriter::Native::kAll;  // without messages
  if (parties > kMostPartiesToStore && !is_short) {
    throw Error(ErrorCode::kInvalidArgument, to_string(scheme) + " over " + std::to_string(parties) +
                                                 " has too many messages to be looked at; " +
                                                 "expected at most " + std::to_string(kMostPartiesToStore) +
                                                 ", or xring or rechd");
  }
  state.stored = all_reduce(state.topology, state.task, scheme);
  for (std::size_t lane = 0; lane < state.stored.lanes.size(); ++lane) {
    state.add(state.stored.lanes[lane].rank, std::make_unique<StoredStream>(state.stored, lane));
  }
  for (const plan::Lane& lane : state.stored.lanes) {
    for (const plan::Step& step : lane.steps) {
      if (step.op == plan::Op::kWait) state.lanes[static_cast<std::size_t>(step.lane)].is_awaited = true;
    }
  }
}

StreamedAllReduce::~StreamedAllReduce() = default;

std::string StreamedAllReduce::order() const { return state_->writer.order(); }

std::span<const plan::TimelineLane> StreamedAllReduce::lanes() const noexcept { return state_->lanes; }

plan::Links StreamedAllReduce::links() const {
  return state_->writer.is_ring_of_ranks() ? plan::Links::kOwn : plan::Links::kShared;
}

}  // namespace onesum::collective
