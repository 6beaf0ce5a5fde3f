#include "plan/progress.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "plan/groups.h"
#include "plan/ranks.h"
#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

// The one slot of a channel.
struct Slot {
  std::optional<StepRef> sender;      // set while it is taken
  Operand message;                    // what the sender wrote
  std::optional<StepRef> receiver;    // set from receive to release
  std::int32_t view = -1;             // the buffer it was received into
  std::optional<StepRef> releaser;    // of the last message
  std::vector<std::int32_t> waiting;  // lanes to look at again when the slot changes
};

// Where the ranks meet to bring each other the counts of a pack.
struct Meeting {
  std::int32_t pack = -1;
  StepRef first;                      // to come
  std::size_t arrived = 0;            // ranks
  std::vector<std::int32_t> waiting;  // lanes
};

// Where the ranks of a group meet for a native collective.
struct NativeMeeting {
  std::vector<StepRef> arrived;  // one for each rank
};

class Run {
 public:
  explicit Run(const Plan& plan)
      : plan_(plan),
        ranks_(plan),
        groups_(plan),
        native_(plan.groups.size()),
        slots_(plan.channels.size()),
        next_(plan.lanes.size(), 0),
        waiting_(plan.lanes.size()),
        attended_(ranks_.size(), 0),
        at_meeting_(plan.lanes.size(), -1) {
    std::size_t steps = 0;
    for (const Lane& lane : plan.lanes) steps += lane.steps.size();
    schedule_.reserve(steps);
    for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan.lanes.size()); ++lane) {
      ready_.push_back(lane);
    }
  }

  Schedule to_end() {
    while (!ready_.empty()) {
      const std::int32_t lane = ready_.front();
      ready_.pop_front();
      advance(lane);
    }
    check_all_done();
    check_nothing_left();
    return std::move(schedule_);
  }

 private:
  const Step& step_at(StepRef ref) const {
    return plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
  }
  Slot& slot(std::int32_t channel) { return slots_[static_cast<std::size_t>(channel)]; }
  std::int32_t& next_of(std::int32_t lane) { return next_[static_cast<std::size_t>(lane)]; }
  bool is_done(std::int32_t lane) {
    return static_cast<std::size_t>(next_of(lane)) == plan_.lane(lane).steps.size();
  }

  void wake(std::vector<std::int32_t>& lanes) {
    ready_.insert(ready_.end(), lanes.begin(), lanes.end());
    lanes.clear();
  }

  // Runs steps of a lane until one must wait; that one registers where it will be woken.
  void advance(std::int32_t lane) {
    while (!is_done(lane)) {
      const StepRef ref{lane, next_of(lane)};
      std::vector<std::int32_t>* obstacle = obstacle_of(ref);
      if (obstacle != nullptr) {
        obstacle->push_back(lane);
        return;
      }
      perform(ref);
      complete(ref);
    }
  }

  void complete(StepRef ref) {
    schedule_.push_back(ref);
    ++next_of(ref.lane);
    wake(waiting_[static_cast<std::size_t>(ref.lane)]);
  }

  // Null if the step can run now, else the list of those who wait for the same.
  std::vector<std::int32_t>* obstacle_of(StepRef ref) {
    const Step& step = step_at(ref);
    if (step.op == Op::kWait) {
      return next_of(step.lane) > step.step ? nullptr : &waiting_[static_cast<std::size_t>(step.lane)];
    }
    if (step.op == Op::kRecv) {
      Slot& from = slot(step.channel);
      return from.sender && !from.receiver ? nullptr : &from.waiting;
    }
    if (step.op == Op::kCounts) return obstacle_of_counts(ref, step);
    if (step.op == Op::kNative) return obstacle_of_native(ref, step);
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role == Role::kSlot && slot(buffer.index).sender) return &slot(buffer.index).waiting;
    }
    return nullptr;
  }

  std::vector<std::int32_t>* obstacle_of_counts(StepRef ref, const Step& step) {
    std::int32_t& meeting = at_meeting_[static_cast<std::size_t>(ref.lane)];
    if (meeting < 0) {
      meeting = attended_[ranks_.of_lane(ref.lane)]++;
      attend(ref, step, static_cast<std::size_t>(meeting));
    }
    Meeting& here = meetings_[static_cast<std::size_t>(meeting)];
    if (here.arrived < ranks_.size()) return &here.waiting;
    meeting = -1;
    wake(here.waiting);
    return nullptr;
  }

  // The last rank to come completes the steps of all others, whose lanes go on.
  std::vector<std::int32_t>* obstacle_of_native(StepRef ref, const Step& step) {
    std::vector<NativeMeeting>& open = native_[static_cast<std::size_t>(step.group)];
    const std::int32_t rank = plan_.lane(ref.lane).rank;
    const auto has_come = [&](const NativeMeeting& meeting) {
      return std::ranges::any_of(meeting.arrived,
                                 [&](StepRef other) { return plan_.lane(other.lane).rank == rank; });
    };
    const auto meeting = std::ranges::find_if_not(open, has_come);
    const auto number = static_cast<std::size_t>(meeting - open.begin());
    if (meeting == open.end()) open.emplace_back();
    std::vector<StepRef>& arrived = open[number].arrived;
    if (!arrived.empty()) check_alike(ref, arrived.front());
    arrived.push_back(ref);
    if (arrived.size() < groups_.members(step.group).size()) return &at_native_;
    check_one_root(arrived);
    arrived.pop_back();
    for (const StepRef& other : arrived) {
      complete(other);
      ready_.push_back(other.lane);
    }
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(number));
    return nullptr;
  }

  const Operand& any_operand(const Step& step) const { return plan_.operands[step.first_operand]; }

  void check_alike(StepRef ref, StepRef first) const {
    const Step& step = step_at(ref);
    const Step& other = step_at(first);
    const Operand& own = any_operand(step);
    const Operand& expected = any_operand(other);
    const Buffer& own_buffer = plan_.buffer(own.buffer);
    const Buffer& expected_buffer = plan_.buffer(expected.buffer);
    if (step.collective == other.collective && own_buffer.pack == expected_buffer.pack &&
        own_buffer.element == expected_buffer.element && own.chunks == expected.chunks) {
      return;
    }
    refuse(fmt::format(
        "{}, of rank {}, with {}, meets {}, of rank {}, with {}: expected the same collective of the same "
        "chunks in the same order on every rank",
        describe(plan_, ref), plan_.lane(ref.lane).rank, contents(own), describe(plan_, first),
        plan_.lane(first.lane).rank, contents(expected)));
  }

  void check_one_root(const std::vector<StepRef>& steps) const {
    const Collective collective = step_at(steps.front()).collective;
    if (collective == Collective::kAllReduce) return;
    std::size_t roots = 0;
    for (const StepRef& ref : steps) {
      const Step& step = step_at(ref);
      roots += collective == Collective::kReduce ? step.num_destinations : step.num_sources;
    }
    if (roots == 1) return;
    refuse(fmt::format("{}: the ranks of g{} have {} {} together, expected one",
                       describe(plan_, steps.front()), step_at(steps.front()).group, roots,
                       collective == Collective::kReduce ? "destinations" : "sources"));
  }

  // A rank comes to its counts number `number`.
  void attend(StepRef ref, const Step& step, std::size_t number) {
    if (number == meetings_.size()) {
      for (const Meeting& earlier : meetings_) {
        if (earlier.pack != step.pack) continue;
        refuse(fmt::format("{}: {} brings the counts of pack {} already", describe(plan_, ref),
                           describe(plan_, earlier.first), step.pack));
      }
      meetings_.push_back({step.pack, ref, 0, {}});
    }
    Meeting& meeting = meetings_[number];
    if (meeting.pack != step.pack) {
      refuse(
          fmt::format("{} is number {} of the counts of rank {}, {} is that of rank {}: expected the same "
                      "packs in the same order",
                      describe(plan_, ref), number, plan_.lane(ref.lane).rank, describe(plan_, meeting.first),
                      plan_.lane(meeting.first.lane).rank));
    }
    ++meeting.arrived;
  }

  void perform(StepRef ref) {
    const Step& step = step_at(ref);
    if (step.op == Op::kRecv) return receive(ref, step);
    if (step.op == Op::kRelease) return release(ref, step);
    for (const Operand& source : plan_.sources(step)) {
      if (plan_.buffer(source.buffer).role == Role::kView) check_view(ref, source);
    }
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role != Role::kSlot) continue;
      Slot& to = slot(buffer.index);
      to.sender = ref;
      to.message = destination;
      wake(to.waiting);
    }
  }

  void receive(StepRef ref, const Step& step) {
    Slot& from = slot(step.channel);
    const Operand& view = plan_.destinations(step).front();
    const Buffer& sent = plan_.buffer(from.message.buffer);
    const Buffer& expected = plan_.buffer(view.buffer);
    if (sent.pack != expected.pack || sent.element != expected.element ||
        from.message.chunks != view.chunks) {
      refuse(fmt::format("{} expects {}, but {} sent {}", describe(plan_, ref), contents(view),
                         describe(plan_, *from.sender), contents(from.message)));
    }
    from.receiver = ref;
    from.view = view.buffer;
  }

  void release(StepRef ref, const Step& step) {
    Slot& from = slot(step.channel);
    if (!from.receiver) {
      const std::string before =
          from.releaser ? fmt::format("; {} released the last message", describe(plan_, *from.releaser)) : "";
      refuse(fmt::format("{}: nothing is received on channel {} that could be released{}",
                         describe(plan_, ref), step.channel, before));
    }
    from.sender.reset();
    from.receiver.reset();
    from.releaser = ref;
    wake(from.waiting);
  }

  void check_view(StepRef ref, const Operand& source) {
    const std::int32_t channel = plan_.buffer(source.buffer).index;
    const Slot& from = slot(channel);
    if (!from.receiver) {
      const std::string before = from.releaser
                                     ? describe(plan_, *from.releaser) + " released it"
                                     : fmt::format("nothing was received on channel {} yet", channel);
      refuse(
          fmt::format("{} reads the view {}, but {}", describe(plan_, ref), describe(plan_, source), before));
    }
    const Chunks& message = from.message.chunks;
    const bool inside = source.chunks.first >= message.first &&
                        source.chunks.first + source.chunks.count <= message.first + message.count;
    if (from.view != source.buffer || !inside) {
      refuse(fmt::format("{} reads the view {}, but {} received {}", describe(plan_, ref),
                         describe(plan_, source), describe(plan_, *from.receiver), contents(from.message)));
    }
  }

  std::string contents(const Operand& operand) const {
    const Buffer& buffer = plan_.buffer(operand.buffer);
    const std::uint32_t last = operand.chunks.first + operand.chunks.count - 1;
    const std::string run = operand.chunks.count == 1
                                ? fmt::format("chunk {}", operand.chunks.first)
                                : fmt::format("chunks {} to {}", operand.chunks.first, last);
    return fmt::format("{} of pack {} in {}", run, buffer.pack, to_string(buffer.element));
  }

  // The first step, of those still to run, that satisfies a predicate.
  template <class Predicate>
  std::optional<StepRef> find_ahead(Predicate predicate) {
    for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
      for (StepRef ref{lane, next_of(lane)};
           static_cast<std::size_t>(ref.step) < plan_.lane(lane).steps.size(); ++ref.step) {
        if (predicate(ref)) return ref;
      }
    }
    return std::nullopt;
  }

  bool sends_on(StepRef ref, std::int32_t channel) const {
    for (const Operand& destination : plan_.destinations(step_at(ref))) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role == Role::kSlot && buffer.index == channel) return true;
    }
    return false;
  }

  bool has(StepRef ref, Op op, std::int32_t channel) const {
    return step_at(ref).op == op && step_at(ref).channel == channel;
  }

  std::string found_ahead(std::string_view verb, const std::optional<StepRef>& ref) const {
    return ref ? fmt::format("{} is to {} it", describe(plan_, *ref), verb)
               : fmt::format("no step is left to {} it", verb);
  }

  std::string why_taken(std::int32_t channel) {
    const Slot& taken = slot(channel);
    if (taken.receiver) {
      const auto ahead = find_ahead([&](StepRef ref) { return has(ref, Op::kRelease, channel); });
      return fmt::format("which holds the message that {} received; {}", describe(plan_, *taken.receiver),
                         found_ahead("release", ahead));
    }
    const auto ahead = find_ahead([&](StepRef ref) { return has(ref, Op::kRecv, channel); });
    return fmt::format("which holds the message that {} sent; {}", describe(plan_, *taken.sender),
                       found_ahead("receive", ahead));
  }

  std::string why_stuck(StepRef ref) {
    const Step& step = step_at(ref);
    if (step.op == Op::kWait) {
      const StepRef awaited{step.lane, step.step};
      if (step.lane == ref.lane) return "waits for itself or a later step of its own lane";
      return fmt::format("waits for {}; lane {} stands at {}", describe(plan_, awaited), step.lane,
                         describe(plan_, StepRef{step.lane, next_of(step.lane)}));
    }
    if (step.op == Op::kRecv) {
      if (slot(step.channel).receiver) {
        return fmt::format("waits for the slot of channel {}, {}", step.channel, why_taken(step.channel));
      }
      const auto ahead = find_ahead([&](StepRef other) { return sends_on(other, step.channel); });
      return fmt::format("waits for a message on channel {}; {}", step.channel, found_ahead("send", ahead));
    }
    if (step.op == Op::kCounts) {
      const std::int32_t meeting = at_meeting_[static_cast<std::size_t>(ref.lane)];
      const auto missing = std::ranges::find_if(attended_, [&](std::int32_t n) { return n <= meeting; });
      return fmt::format("waits for rank {}, which has not come to it",
                         ranks_.rank(static_cast<std::size_t>(missing - attended_.begin())));
    }
    if (step.op == Op::kNative) return why_alone(ref, step);
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role != Role::kSlot || !slot(buffer.index).sender) continue;
      return fmt::format("waits for the slot of channel {}, {}", buffer.index, why_taken(buffer.index));
    }
    return "can run";
  }

  // The first rank that a native step waits for, and what keeps that rank.
  std::string why_alone(StepRef ref, const Step& step) {
    for (const NativeMeeting& meeting : native_[static_cast<std::size_t>(step.group)]) {
      if (std::ranges::find(meeting.arrived, ref) == meeting.arrived.end()) continue;
      for (const Member& member : groups_.members(step.group)) {
        const auto is_there = [&](StepRef other) { return plan_.lane(other.lane).rank == member.rank; };
        if (std::ranges::any_of(meeting.arrived, is_there)) continue;
        const auto ahead = find_ahead([&](StepRef other) {
          return plan_.lane(other.lane).rank == member.rank && step_at(other).op == Op::kNative;
        });
        return fmt::format("waits for rank {}, which has not come to it; {}", member.rank,
                           ahead ? "its next native step is " + describe(plan_, *ahead)
                                 : "no native step of that rank is left");
      }
    }
    return "waits";
  }

  void check_all_done() {
    constexpr int kShown = 4;
    int stuck = 0;
    std::string reasons;
    for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan_.lanes.size()); ++lane) {
      if (is_done(lane) || ++stuck > kShown) continue;
      const StepRef ref{lane, next_of(lane)};
      reasons += fmt::format("{}{} {}", stuck > 1 ? ". " : "", describe(plan_, ref), why_stuck(ref));
    }
    if (stuck == 0) return;
    if (stuck > kShown) reasons += fmt::format(". {} more lanes wait", stuck - kShown);
    refuse("deadlock: " + reasons);
  }

  void check_nothing_left() {
    for (std::size_t channel = 0; channel < slots_.size(); ++channel) {
      const Slot& left = slots_[channel];
      if (left.receiver) {
        refuse(fmt::format("{} receives a message on channel {} that nobody releases",
                           describe(plan_, *left.receiver), channel));
      }
      if (left.sender) {
        refuse(fmt::format("{} sends a message on channel {} that nobody receives",
                           describe(plan_, *left.sender), channel));
      }
    }
  }

  const Plan& plan_;
  Ranks ranks_;
  Groups groups_;
  std::vector<std::vector<NativeMeeting>> native_;  // by group: those that wait for ranks
  std::vector<std::int32_t> at_native_;             // lanes that wait so; the last to come lets them go on
  std::vector<Slot> slots_;
  std::vector<std::int32_t> next_;                  // of each lane, the step it stands at
  std::vector<std::vector<std::int32_t>> waiting_;  // of each lane, those that wait for a step of it
  std::vector<Meeting> meetings_;
  std::vector<std::int32_t> attended_;    // of each rank, how many meetings
  std::vector<std::int32_t> at_meeting_;  // of each lane, where it waits; -1: nowhere
  std::deque<std::int32_t> ready_;
  Schedule schedule_;
};

}  // namespace

Schedule run_to_end(const Plan& plan) { return Run(plan).to_end(); }

}  // namespace onesum::plan
