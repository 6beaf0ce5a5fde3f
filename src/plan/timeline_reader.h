// What plan/timeline.h keeps of a step: when it can happen, how long it takes, on which lines it sends.
//
// A lane's steps are boiled down some hundred at a time, while they are warm in the caches; the simulation
// jumps between lanes and finds what it needs of a step in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plan/channel_hash.h"
#include "plan/cost.h"
#include "plan/timeline.h"

namespace onesum::plan {

// One of a lane's steps. A work is followed by its sends, a wait by the number of the step.
struct Action {
  enum class Kind : std::uint8_t { kWork, kSend, kRecv, kRelease, kWait, kStep, kCounts };
  double seconds = 0;       // kWork: how long it takes; kSend: how long its bytes are on the line
  std::int32_t number = 0;  // kWork: how many sends follow; kSend, kRecv, kRelease: which line; kWait: which
                            // lane; kStep: which step
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

  const std::vector<LineEnds>& lines() const { return lines_; }  // by number; those met so far
  Cost& cost() { return cost_; }  // everything but seconds and longest_chain, of what was read so far

 private:
  // A part's channels, by their numbers in it. A part may be made anew at the same address, so an entry says
  // what it stands for.
  struct KnownLine {
    Channel channel{-1, -1, 0};
    std::int32_t line = -1;
  };
  struct Source {
    Stretch stretch;
    std::vector<KnownLine>* lines = nullptr;  // of the part
    std::vector<Action> actions;
  };

  bool fetch(std::int32_t lane, Source& source);
  void append(std::int32_t lane, Source& source, const Step& step);
  void append_work(Source& source, const Step& step);
  void append_send(Source& source, const Buffer& slot, std::uint64_t bytes);
  std::int32_t line_of(Source& source, std::int32_t channel);
  std::size_t length_of(const Plan& part, std::int32_t pack, Chunks chunks);
  void measure(const Plan& part, std::int32_t pack);

  std::span<const TimelineLane> lanes_;
  const Sizes& sizes_;
  const CostConstants& constants_;
  std::vector<Source> sources_;  // by lane
  std::vector<LineEnds> lines_;
  std::unordered_map<Channel, std::int32_t, ChannelHash> line_numbers_;
  std::unordered_map<const Plan*, std::unique_ptr<std::vector<KnownLine>>> known_lines_;
  std::vector<std::vector<std::size_t>> ends_;  // by pack: elements before each chunk, and all of them
  Cost cost_;
};

}  // namespace onesum::plan
