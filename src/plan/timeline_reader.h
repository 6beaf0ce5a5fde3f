// What plan/timeline.h keeps of a step: when it can happen, how long it takes, on which lines it sends.
//
// A lane's steps are boiled down a stretch at a time, while they are warm in the caches; the simulation jumps
// between lanes and finds what it needs of a step in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plan/channel_hash.h"
#include "plan/cost.h"
#include "plan/timeline.h"

namespace onesum::plan {

// One of a lane's steps. A work is followed by its sends, a wait by the number of the step.
struct Action {
  enum class Kind : std::uint8_t { kWork, kSend, kRecv, kRelease, kWait, kStep, kCounts, kNative };
  double seconds = 0;       // kWork, kNative: how long it takes; kSend: how long its bytes are on the line
  std::int32_t number = 0;  // kWork: how many sends follow; kSend, kRecv, kRelease: which line; kWait: which
                            // lane; kStep: which step; kNative: which group
  Kind kind = Kind::kWork;
};

// The ranks at the ends of a line, which is a channel under the number that all parts know it by.
struct LineEnds {
  std::int32_t from_rank = 0;
  std::int32_t to_rank = 0;
};

// Boils steps down and adds up what does not depend on time.
class TimelineReader {
 public:
  TimelineReader(std::span<const TimelineLane> lanes, const Sizes& sizes, const CostConstants& constants);

  // The next actions of a lane, valid until the next call for the same lane; none: it ends.
  std::span<const Action> read(std::int32_t lane);

  // How many ranks take part in a group, under the number that all parts know it by.
  std::size_t ranks_of_group(std::int32_t number) const {
    return group_ranks_[static_cast<std::size_t>(number)];
  }

  const std::vector<LineEnds>& lines() const { return lines_; }  // by number; those met so far
  Cost& cost() { return cost_; }  // everything but seconds and longest_chain, of what was read so far

 private:
  // A part's channels, by their numbers in it. A part may be made anew at the same address, so an entry says
  // what it stands for.
  struct KnownLine {
    Channel channel{-1, -1, 0};
    std::int32_t line = -1;
  };
  using Actions = std::vector<Action>;

  void open(const Plan& part);
  void append(std::int32_t lane, const Step& step, Actions& actions);
  void append_wait(std::int32_t lane, const Step& step, Actions& actions);
  void append_work(const Step& step, Actions& actions);
  void append_native(const Step& step, Actions& actions);
  std::int32_t group_of(std::int32_t group);
  void append_send(const Buffer& slot, std::uint64_t bytes, Actions& actions);
  std::int32_t line_of(std::int32_t channel);
  std::size_t length_of(std::int32_t pack, Chunks chunks);
  void measure(std::int32_t pack);

  std::span<const TimelineLane> lanes_;
  const Sizes& sizes_;
  const CostConstants& constants_;
  std::vector<Actions> actions_;             // by lane
  const Plan* part_ = nullptr;               // at hand
  std::vector<KnownLine>* known_ = nullptr;  // its channels
  std::vector<LineEnds> lines_;
  std::unordered_map<Channel, std::int32_t, ChannelHash> line_numbers_;
  std::map<std::vector<std::int32_t>, std::int32_t> group_numbers_;  // by devices
  std::vector<std::size_t> group_ranks_;                             // by number
  std::unordered_map<const Plan*, std::unique_ptr<std::vector<KnownLine>>> known_lines_;
  std::vector<std::vector<std::size_t>> ends_;  // by pack: elements before each chunk, and all of them
  Cost cost_;
};

}  // namespace onesum::plan
