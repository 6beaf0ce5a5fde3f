#include "plan/timeline.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "plan/event_queue.h"
#include "plan/refuse.h"
#include "plan/timeline_reader.h"

namespace onesum::plan {

namespace {

constexpr std::int32_t kNone = -1;

// When something happened, and after how many steps in a chain.
struct Moment {
  double time = 0;
  std::size_t chain = 0;

  void wait_for(const Moment& other) {
    time = std::max(time, other.time);
    chain = std::max(chain, other.chain);
  }
};

// A queue with room for as many as a channel has slots; the entries are elsewhere.
struct Ring {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  std::size_t push(std::size_t slots) {
    const std::size_t at = std::size_t{first} + count++;
    return at < slots ? at : at - slots;
  }
  std::size_t pop(std::size_t slots) {
    const std::size_t at = first;
    first = at + 1 == slots ? 0 : first + 1;
    --count;
    return at;
  }
};

// A channel.
struct Line {
  LineEnds ends;
  Ring arrivals;                   // of messages that nobody received yet
  Ring freed;                      // when those slots became free that are
  std::uint32_t held = 0;          // messages received and not released
  std::int32_t senders = kNone;    // lanes that wait for a slot: the first, which knows the next
  std::int32_t receivers = kNone;  // lanes that wait for a message
};

struct RankState {
  double outgoing_free = 0;  // when its links are
  double incoming_free = 0;
  std::int32_t first_ready = kNone;  // lanes whose steps could begin: the first, which knows the next
  std::int32_t last_ready = kNone;
  std::int32_t meetings = 0;  // that it has come to
  std::int32_t lanes = 0;
  std::int32_t hears_from = kNone;  // which rank, with own links
  bool is_busy = false;
};

struct LaneState {
  const Action* next = nullptr;
  const Action* end = nullptr;  // of those that were read
  Moment now;
  std::size_t done = 0;  // steps
  std::int32_t rank = 0;
  std::int32_t next_waiting = kNone;  // in the list that it waits in
  std::int32_t meeting = kNone;       // where it waits
  std::int32_t waiting = kNone;       // lanes that wait for a step of this one: the first
  bool is_awaited = false;
  bool is_running = false;  // its next step has begun
};

// Where ranks bring each other counts, or run a native collective.
struct Meeting {
  std::size_t arrived = 0;
  Moment last;
  double seconds = 0;            // that it takes when all are there
  std::int32_t waiting = kNone;  // the first lane
};

// The native collectives of a group.
struct GroupState {
  std::vector<Meeting> meetings;
  std::unordered_map<std::int32_t, std::int32_t> attended;  // by rank: how many
};

class Timeline {
 public:
  Timeline(std::span<const TimelineLane> lanes, const Sizes& sizes, const CostConstants& constants,
           Links links)
      : constants_(constants),
        has_own_links_(links == Links::kOwn),
        slots_(std::max<std::size_t>(constants.slots, 1)),
        reader_(lanes, sizes, constants),
        lanes_(lanes.size()),
        histories_(lanes.size()),
        unfinished_(lanes.size()) {
    events_.reserve(lanes.size());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto rank = static_cast<std::size_t>(lanes[i].rank);
      if (rank >= ranks_.size()) ranks_.resize(rank + 1);
      if (ranks_[rank].lanes++ == 0) {
        ++num_ranks_;
      } else if (has_own_links_) {
        refuse(fmt::format("timeline: rank {} has several lanes; expected one, with links of its own", rank));
      }
      lanes_[i].rank = lanes[i].rank;
      lanes_[i].is_awaited = lanes[i].is_awaited;
      wake(static_cast<std::int32_t>(i), 0);
    }
  }

  Cost run() {
    // Either there are no events, or there is nothing else.
    while (!runnable_.empty()) {
      const std::int32_t lane = runnable_.back();
      runnable_.pop_back();
      advance(lane, 0);
    }
    while (!events_.empty()) {
      const Event event = events_.pop();
      advance(event.lane(), event.time());
    }
    if (unfinished_ > 0) refuse_stuck();
    Cost cost = std::move(reader_.cost());
    for (const DeviceCost& device : cost.devices) {
      cost.total.bytes_read += device.bytes_read;
      cost.total.bytes_written += device.bytes_written;
      cost.total.bytes_sent += device.bytes_sent;
      cost.total.bytes_received += device.bytes_received;
      cost.total.additions += device.additions;
    }
    cost.messages = cost.inside.messages + cost.across.messages;
    cost.longest_chain = longest_chain_;
    cost.seconds = seconds_;
    return cost;
  }

 private:
  LaneState& lane_at(std::int32_t lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  RankState& rank_at(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Line& line_at(std::int32_t line) { return lines_[static_cast<std::size_t>(line)]; }
  Moment& arrival_at(std::int32_t line, std::size_t slot) {
    return arrivals_[static_cast<std::size_t>(line) * slots_ + slot];
  }
  double& freed_at(std::int32_t line, std::size_t slot) {
    return freed_[static_cast<std::size_t>(line) * slots_ + slot];
  }

  // Whether nothing else happens before, or nothing that matters.
  bool is_next(const Event& event) const {
    return has_own_links_ || events_.empty() || event < events_.first();
  }

  // A lane that waited can go on, at this time or, if that is later, at its own.
  void wake(std::int32_t number, double time) {
    if (has_own_links_) return runnable_.push_back(number);
    events_.push({std::max(time, lane_at(number).now.time), number});
  }

  // Runs a lane until it must wait, for something to happen or for a time to come.
  void advance(std::int32_t number, double time) {
    LaneState& lane = lane_at(number);
    if (lane.is_running) finish(number, lane, time);
    while (true) {
      if (lane.next == lane.end && !read(number, lane)) {
        seconds_ = std::max(seconds_, lane.now.time);
        --unfinished_;
        return;
      }
      if (lane.next->kind == Action::Kind::kWork) {
        const std::optional<double> start = start_of(number, lane);
        if (!start) return;
        if (*start > time) {
          if (!is_next({*start, number})) return events_.push({*start, number});
          time = *start;
        }
        if (rank_at(lane.rank).is_busy) return queue_up(number, lane);
        time = begin(lane, time);
        if (!is_next({time, number})) return events_.push({time, number});
        finish(number, lane, time);
      } else if (!pass(number, lane)) {
        return;
      }
    }
  }

  bool read(std::int32_t number, LaneState& lane) {
    const std::span<const Action> actions = reader_.read(number);
    lane.next = actions.data();
    lane.end = lane.next + actions.size();
    const std::vector<LineEnds>& lines = reader_.lines();
    for (std::size_t i = lines_.size(); i < lines.size(); ++i) add_line(lines[i]);
    return !actions.empty();
  }

  void add_line(const LineEnds& ends) {
    Line& line = lines_.emplace_back();
    line.ends = ends;
    line.freed.count = static_cast<std::uint32_t>(slots_);
    arrivals_.resize(lines_.size() * slots_);
    freed_.resize(lines_.size() * slots_);
    const auto most = static_cast<std::size_t>(std::max(ends.from_rank, ends.to_rank)) + 1;
    if (ranks_.size() < most) ranks_.resize(most);
    if (has_own_links_ && ends.from_rank != ends.to_rank) check_is_only_sender(ends);
  }

  void check_is_only_sender(const LineEnds& ends) {
    std::int32_t& known = rank_at(ends.to_rank).hears_from;
    if (known != kNone && known != ends.from_rank) {
      refuse(fmt::format("timeline: rank {} hears from ranks {} and {}; expected one, with links of its own",
                         ends.to_rank, known, ends.from_rank));
    }
    known = ends.from_rank;
  }

  // Lists of lanes that wait: the last to come is the first of the list.
  void enlist(std::int32_t& list, std::int32_t number) {
    lane_at(number).next_waiting = list;
    list = number;
  }

  void wake_all(std::int32_t& list, double time) {
    while (list != kNone) {
      const std::int32_t number = list;
      list = lane_at(number).next_waiting;
      wake(number, time);
    }
  }

  // A step, of so many actions, is done.
  void complete(std::int32_t number, LaneState& lane, std::int32_t actions) {
    lane.next += actions;
    ++lane.done;
    if (!lane.is_awaited) return;
    histories_[static_cast<std::size_t>(number)].push_back(lane.now);
    // Wakes those who wait for just this step.
    std::int32_t* link = &lane.waiting;
    while (*link != kNone) {
      LaneState& waiting = lane_at(*link);
      if (static_cast<std::size_t>(waiting.next[1].number) >= lane.done) {
        link = &waiting.next_waiting;
        continue;
      }
      wake(*link, lane.now.time);
      *link = waiting.next_waiting;
    }
  }

  // A step that takes no time; false: it has to wait and will be woken.
  bool pass(std::int32_t number, LaneState& lane) {
    const Action& action = *lane.next;
    std::int32_t actions = 1;
    switch (action.kind) {
      case Action::Kind::kRecv:
        if (!receive(number, lane, action.number)) return false;
        break;
      case Action::Kind::kRelease:
        release(lane, action.number);
        break;
      case Action::Kind::kCounts:
        if (!meet_for_counts(number, lane)) return false;
        break;
      case Action::Kind::kNative:
        if (!meet_natively(number, lane, action)) return false;
        break;
      default:
        if (!wait(number, lane)) return false;
        actions = 2;
    }
    complete(number, lane, actions);
    return true;
  }

  bool receive(std::int32_t number, LaneState& lane, std::int32_t from) {
    Line& line = line_at(from);
    if (line.arrivals.count == 0) {
      enlist(line.receivers, number);
      return false;
    }
    lane.now.wait_for(arrival_at(from, line.arrivals.pop(slots_)));
    ++line.held;
    return true;
  }

  void release(const LaneState& lane, std::int32_t from) {
    Line& line = line_at(from);
    if (line.held == 0) refuse("cost: a step releases what was not received");
    --line.held;
    freed_at(from, line.freed.push(slots_)) = lane.now.time;
    wake_all(line.senders, lane.now.time);
  }

  bool wait(std::int32_t number, LaneState& lane) {
    const std::int32_t other = lane.next[0].number;
    const auto step = static_cast<std::size_t>(lane.next[1].number);
    if (lane_at(other).done <= step) {
      enlist(lane_at(other).waiting, number);
      return false;
    }
    lane.now.wait_for(histories_[static_cast<std::size_t>(other)][step]);
    return true;
  }

  bool meet_for_counts(std::int32_t number, LaneState& lane) {
    const double seconds = constants_.across.latency * static_cast<double>(std::bit_width(num_ranks_ - 1));
    return meet(number, lane, meetings_, rank_at(lane.rank).meetings, num_ranks_, seconds);
  }

  bool meet_natively(std::int32_t number, LaneState& lane, const Action& action) {
    if (static_cast<std::size_t>(action.number) >= groups_.size()) {
      groups_.resize(static_cast<std::size_t>(action.number) + 1);
    }
    GroupState& group = groups_[static_cast<std::size_t>(action.number)];
    if (!meet(number, lane, group.meetings, group.attended[lane.rank], reader_.ranks_of_group(action.number),
              action.seconds)) {
      return false;
    }
    longest_chain_ = std::max(longest_chain_, ++lane.now.chain);
    return true;
  }

  // The lane's rank comes to the next of some meetings, of which it has attended so many, of so many ranks.
  // False: it waits for others.
  bool meet(std::int32_t number, LaneState& lane, std::vector<Meeting>& meetings, std::int32_t& attended,
            std::size_t ranks, double seconds) {
    if (lane.meeting == kNone) {
      lane.meeting = attended++;
      if (static_cast<std::size_t>(lane.meeting) == meetings.size()) meetings.emplace_back();
      Meeting& meeting = meetings[static_cast<std::size_t>(lane.meeting)];
      meeting.last.wait_for(lane.now);
      meeting.seconds = std::max(meeting.seconds, seconds);
      if (++meeting.arrived < ranks) {
        enlist(meeting.waiting, number);
        return false;
      }
      meeting.last.time += meeting.seconds;
      wake_all(meeting.waiting, meeting.last.time);
    }
    lane.now.wait_for(meetings[static_cast<std::size_t>(lane.meeting)].last);
    lane.meeting = kNone;
    return true;
  }

  static std::span<const Action> sends_of(const LaneState& lane) {
    return {lane.next + 1, static_cast<std::size_t>(lane.next->number)};
  }

  // When a lane's work could begin; nothing: it waits for a slot and will be woken.
  std::optional<double> start_of(std::int32_t number, const LaneState& lane) {
    double start = lane.now.time;
    for (const Action& send : sends_of(lane)) {
      Line& line = line_at(send.number);
      if (line.freed.count == 0) {
        enlist(line.senders, number);
        return std::nullopt;
      }
      start = std::max(start, freed_at(send.number, line.freed.first));
    }
    return start;
  }

  void queue_up(std::int32_t number, LaneState& lane) {
    RankState& rank = rank_at(lane.rank);
    lane.next_waiting = kNone;
    (rank.first_ready == kNone ? rank.first_ready : lane_at(rank.last_ready).next_waiting) = number;
    rank.last_ready = number;
  }

  // Begins a lane's work; returns when it will be done.
  double begin(LaneState& lane, double time) {
    for (const Action& send : sends_of(lane)) {
      Line& line = line_at(send.number);
      if (line.freed.count == 0) refuse("cost: two messages are sent at once on one channel");
      line.freed.pop(slots_);
    }
    rank_at(lane.rank).is_busy = true;
    lane.is_running = true;
    return time + lane.next->seconds;
  }

  // A lane's work is done: its messages leave, and its rank goes on.
  void finish(std::int32_t number, LaneState& lane, double time) {
    lane.is_running = false;
    lane.now.time = time;
    longest_chain_ = std::max(longest_chain_, ++lane.now.chain);
    for (const Action& send : sends_of(lane)) {
      Line& line = line_at(send.number);
      const double arrival = arrival_of(line.ends, time, send.seconds);
      arrival_at(send.number, line.arrivals.push(slots_)) = {arrival, lane.now.chain};
      wake_all(line.receivers, arrival);
    }
    complete(number, lane, 1 + lane.next->number);
    RankState& rank = rank_at(lane.rank);
    rank.is_busy = false;
    if (rank.first_ready == kNone) return;
    const std::int32_t ready = rank.first_ready;
    rank.first_ready = lane_at(ready).next_waiting;
    events_.push({begin(lane_at(ready), time), ready});
  }

  double arrival_of(const LineEnds& ends, double time, double seconds) {
    if (ends.from_rank == ends.to_rank) return time + constants_.inside.latency + seconds;
    double& outgoing = rank_at(ends.from_rank).outgoing_free;
    double& incoming = rank_at(ends.to_rank).incoming_free;
    const double leaves = std::max(time, outgoing);
    outgoing = leaves + seconds;
    incoming = std::max(leaves + constants_.across.latency, incoming) + seconds;
    return incoming;
  }

  [[noreturn]] void refuse_stuck() const {
    constexpr std::string_view kReasons[] = {
        "a free slot",  "", "a message",       "",
        "another lane", "", "all other ranks", "the other ranks of its group"};
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const LaneState& lane = lanes_[i];
      if (lane.next == lane.end) continue;
      refuse(
          fmt::format("cost: the plan does not get to its end: {} lanes wait, lane {} at its step {} for {}",
                      unfinished_, i, lane.done, kReasons[static_cast<std::size_t>(lane.next->kind)]));
    }
    refuse("cost: the plan does not get to its end");
  }

  const CostConstants constants_;
  const bool has_own_links_;
  const std::size_t slots_;
  TimelineReader reader_;
  std::vector<LaneState> lanes_;
  std::vector<std::vector<Moment>> histories_;  // by lane, if it is awaited: when its steps were done
  std::size_t unfinished_;                      // lanes
  std::vector<RankState> ranks_;
  std::size_t num_ranks_ = 0;  // that have lanes
  std::vector<Line> lines_;
  std::vector<Moment> arrivals_;        // by line and slot
  std::vector<double> freed_;           // by line and slot
  std::vector<Meeting> meetings_;       // for counts
  std::vector<GroupState> groups_;      // by number
  EventQueue events_;                   // with shared links
  std::vector<std::int32_t> runnable_;  // lanes, with links of their own
  double seconds_ = 0;
  std::size_t longest_chain_ = 0;
};

}  // namespace

Cost timeline(std::span<const TimelineLane> lanes, const Sizes& sizes, const CostConstants& constants,
              Links links) {
  return Timeline(lanes, sizes, constants, links).run();
}

}  // namespace onesum::plan
