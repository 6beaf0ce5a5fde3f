#include "exec/executor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <onesum/error.h>

#include "base/interrupt.h"
#include "exec/fronts.h"
#include "exec/patience.h"
#include "exec/segments.h"

namespace onesum::exec {
namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void throw_expired() {
  throw Error(ErrorCode::kDeadlineExceeded,
              "the call did not finish within its timeout; results passed by the caller are incomplete");
}

}  // namespace

// One run. Lanes take turns: a step that has to wait leaves the turn to the next lane, and where all lanes of
// a round wait, the next round has its turn, up to the program's window. A verified plan always has a lane
// that can go on, or waits for another process.
class Executor::Run {
 public:
  Run(Instance& instance, Deadline deadline, FunctionCaller* caller, const Crossing* crossing)
      : instance_(instance),
        program_(instance.program()),
        deadline_(deadline),
        caller_(caller),
        crossing_(crossing),
        fronts_(instance.fronts_.get()),
        place_(crossing_ == nullptr ? 0 : instance.place_of(crossing_->first_beat)),
        pointers_(instance.pointers(place_)) {
    if (crossing_ != nullptr) patience_.emplace(crossing_->transport, crossing_->is_crowded);
  }

  Waiting to_end() {
    if (fronts_ == nullptr) return work();
    try {
      fronts_->begin();
      return work();
    } catch (...) {
      instance_.give_up();
      throw;
    }
  }

 private:
  using Open = Instance::Open;

  // Steps between two looks at the clock. (Steps of many segments look at it by themselves.)
  static constexpr std::uint64_t kStepsPerLook = 64;

  // How long to look for a device's news before sleeping, and how long to sleep.
  static constexpr std::uint32_t kLooksAtDevices = 1000;
  static constexpr std::chrono::microseconds kDeviceNap{20};

  Waiting work() {
    while (closed_ < program_.rounds.size()) {
      const std::uint64_t before = steps_ + closed_ + landings_;
      for (std::size_t round = closed_; round < opened_; ++round) advance(open(round));
      while (closed_ < opened_ && open(closed_).waiting == 0 && is_over(closed_)) close_first();
      const bool has_progressed = steps_ + closed_ + landings_ != before;
      if (has_progressed) go_on();
      if (opened_ < program_.rounds.size() && opened_ < closed_ + program_.window.divisor()) {
        open_next();
      } else if (!has_progressed) {
        wait_for_others();
      }
    }
    if (crossing_ != nullptr) flush();
    return waiting_;
  }

  // Whether the devices have done what a round gave them, or somebody else waits for them.
  bool is_over(std::size_t round) {
    if (fronts_ == nullptr) return true;
    const std::uint32_t lanes = open(round).round->num_lanes;
    if (fronts_->may_return_early()) {
      fronts_->hand_over(lanes);
      return true;
    }
    if (!fronts_->are_done(program_.window.of(round), lanes)) return false;
    fronts_->check_devices();
    return true;
  }

  Open& open(std::size_t round) { return instance_.open_[program_.window.of(round)]; }

  // The first round that is not at its end, among the beats of all runs.
  std::uint64_t first_beat() const { return (crossing_ == nullptr ? 0 : crossing_->first_beat) + closed_; }

  void open_next() {
    Open& next = open(opened_);
    next.round = &program_.rounds[opened_];
    next.number = program_.window.of(opened_);
    std::fill_n(next.done.begin(), next.round->num_lanes, 0);
    std::fill_n(next.sent.begin(), next.round->num_postings, 0);
    if (!program_.natives.empty()) std::fill_n(next.given.begin(), next.round->num_lanes, 0);
    next.waiting = 0;
    next.landings = next.round->num_landings;
    if (crossing_ != nullptr) begin(next);
    ++opened_;
    for (std::uint32_t lane = 0; lane < next.round->num_lanes; ++lane) {
      if (!advance(next, lane)) next.lanes[next.waiting++] = lane;
    }
    if (next.landings > 0) receive_into_tensors(next);
  }

  void begin(Open& next) {
    const std::uint64_t first = crossing_->first_beat;
    next.beat = {first + opened_, crossing_->token,
                 first + opened_ + 1 - std::min<std::size_t>(opened_ + 1, program_.window.divisor()),
                 program_.shift(place_ + opened_)};
    if (opened_ == closed_) crossing_->watch.begin(next.beat.number);
    crossing_->transport.begin(
        next.beat,
        std::span(program_.incoming).subspan(next.round->first_incoming, next.round->num_incoming));
  }

  void close_first() {
    if (crossing_ != nullptr) crossing_->transport.finish(open(closed_).beat);
    ++closed_;
    if (crossing_ != nullptr && closed_ < opened_) crossing_->watch.begin(first_beat());
  }

  // Every lane that is not at its end has a turn.
  void advance(Open& open) {
    if (open.waiting == 0) return;
    if (crossing_ == nullptr) check_deadline();
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < open.waiting; ++i) {
      const std::uint32_t lane = open.lanes[i];
      if (!advance(open, lane)) open.lanes[waiting++] = lane;
    }
    open.waiting = waiting;
    if (open.landings > 0) receive_into_tensors(open);
  }

  // As far as the memory is free.
  void receive_into_tensors(Open& open) {
    for (std::uint32_t i = 0; i < open.round->num_landings; ++i) {
      const Landing& landing = program_.landings[open.round->first_landing + i];
      if (sent(open, landing.posting) != 0 || open.done[landing.lane] < landing.steps) continue;
      if (landing.after_sends && !crossing_->transport.is_taken(open.beat)) continue;
      const Posting& posting = program_.postings[landing.posting];
      Stretches stretches;
      crossing_->transport.receive_into(open.beat, posting.place, find(posting, stretches));
      sent(open, landing.posting) = 1;
      --open.landings;
      ++landings_;  // the message may be here already
    }
  }

  using Stretches = std::array<engine::Stretch, kMostStretches>;
  std::span<const engine::Stretch> find(const Posting& posting, Stretches& room) const {
    for (std::uint32_t i = 0; i < posting.num_stretches; ++i) {
      const BoundStretch& stretch = program_.stretches[posting.first_stretch + i];
      room[i] = {pointers_[stretch.pointer], stretch.bytes};
    }
    return std::span(room).first(posting.num_stretches);
  }

  // Everything that this rank owes is on its way without further help.
  void flush() {
    while (!crossing_->transport.is_flushed()) {
      if (!patience_->glance()) pause(-1);
    }
    go_on();
  }

  std::span<const BoundStep> steps_of(const Open& open, std::size_t lane) const {
    const BoundLane& bound = program_.lanes[open.round->first_lane + lane];
    return std::span(program_.steps).subspan(bound.first_step, bound.num_steps);
  }

  // Runs the steps of a lane until one has to wait; says whether the lane is at its end.
  bool advance(Open& open, std::uint32_t lane) {
    const std::span<const BoundStep> steps = steps_of(open, lane);
    std::uint32_t& done = open.done[lane];
    for (; done < steps.size(); ++done) {
      const BoundStep& step = steps[done];
      if (!can_run(open, step)) return false;
      if (step.op == plan::Op::kNative) {
        if (!run_native(open, lane, step)) return false;
      } else {
        if (fronts_ != nullptr && !is_in_order(open, lane, step)) return false;
        perform(open, lane, step);
      }
      if (++steps_ % kStepsPerLook == 0) check_deadline();
    }
    return true;
  }

  std::span<const std::uint32_t> sends(const BoundStep& step) const {
    return std::span(program_.sends).subspan(step.first_send, step.num_sends);
  }
  static std::uint32_t& sent(Open& open, std::uint32_t posting) {
    return open.sent[posting - open.round->first_posting];
  }

  bool can_run(Open& open, const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
        return open.done[step.wait_lane] >= step.wait_steps;
      case plan::Op::kRecv:
        return has_arrived(open, step.posting);
      case plan::Op::kNative:
        return true;
      default:
        if (step.overwrites_lent && !crossing_->transport.is_taken(open.beat)) return false;
        return std::ranges::all_of(
            sends(step), [&](std::uint32_t posting) { return may_send(open, program_.postings[posting]); });
    }
  }

  bool has_arrived(Open& open, std::uint32_t number) {
    const Posting& posting = program_.postings[number];
    if (posting.way == Way::kLocal) return sent(open, number) != 0;
    if (posting.num_stretches > 0 && sent(open, number) == 0) return false;
    const engine::Arrival arrival = crossing_->transport.arrival(open.beat, posting.place);
    if (arrival == engine::Arrival::kNotYet) return false;
    if (arrival != engine::Arrival::kHere) crossing_->watch.refuse(posting.place.peer, arrival);
    return true;
  }

  bool may_send(const Open& open, const Posting& posting) const {
    return posting.way == Way::kLocal || held_up_by(open, posting.place) < 0;
  }

  // The rank that has not read yet what a message would overwrite; -1: none.
  int held_up_by(const Open& open, const engine::Place& place) const {
    if (engine::is_common(place.box)) return crossing_->transport.reader_of_common(open.beat);
    return crossing_->transport.may_send(open.beat, place.peer) ? -1 : place.peer;
  }

  // Whether the step comes after what the lane did before, and what it waits for: on devices, too.
  bool is_in_order(Open& open, std::uint32_t lane, const BoundStep& step) {
    if (!fronts_->move(open.number, lane, step.unit)) return false;
    if (step.op == plan::Op::kWait) return fronts_->follow(open.number, lane, step.wait_lane);
    if (step.op != plan::Op::kRecv || program_.postings[step.posting].way != Way::kLocal) return true;
    return fronts_->follow(open.number, lane, sent(open, step.posting) - 1);
  }

  void perform(Open& open, std::uint32_t lane, const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
      case plan::Op::kRecv:
        break;
      case plan::Op::kCall:
        instance_.bases_[step.result_slot] =
            caller_->call({step.pack, step.device, {pointers_ + step.first_source, step.num_sources}});
        instance_.bases_changed();
        pointers_ = instance_.pointers(place_);
        check_deadline();
        break;
      default:
        if (step.num_segments > 0) run_arithmetic(open, lane, step);
        for (const std::uint32_t posting : sends(step)) send(open, lane, posting);
        break;
    }
  }

  // The library takes what it is given in the communicator's turn, and has taken it when it is ready again.
  bool run_native(Open& open, std::uint32_t lane, const BoundStep& step) {
    const BoundNative& native = program_.natives[step.native];
    engine::Communicator& communicator = *program_.communicators[native.communicator];
    if (open.given[lane] == 0) {
      if (!communicator.take_turn()) return false;
      fronts_->enter(open.number, lane, communicator);
      communicator.give(work_of(native, communicator.devices()));
      open.given[lane] = 1;
    }
    if (!communicator.is_ready()) return false;
    open.given[lane] = 0;
    fronts_->leave(open.number, lane, communicator, native.spans_processes);
    return true;
  }

  engine::NativeWork work_of(const BoundNative& native, std::size_t devices) {
    const std::size_t shares = native.num_counts * devices;
    for (std::size_t s = 0; s < shares; ++s) {
      const BoundShare& bound = program_.native_shares[native.first_share + s];
      instance_.shares_[s] = {bound.source < 0 ? nullptr : pointers_[bound.source],
                              bound.destination < 0 ? nullptr : pointers_[bound.destination]};
    }
    return {native.collective, native.element, native.root,
            std::span(program_.native_counts).subspan(native.first_count, native.num_counts),
            std::span(instance_.shares_).first(shares)};
  }

  void send(Open& open, std::uint32_t lane, std::uint32_t number) {
    const Posting& posting = program_.postings[number];
    if (posting.way == Way::kLocal) {
      sent(open, number) = lane + 1;
    } else if (posting.num_stretches > 0) {
      Stretches stretches;
      crossing_->transport.send_from(open.beat, posting.place, find(posting, stretches));
    } else {
      crossing_->transport.send(open.beat, posting.place);
    }
  }

  void run_arithmetic(const Open& open, std::uint32_t lane, const BoundStep& step) const {
    if (step.unit != kHost) {
      give_segments(program_, step, pointers_, fronts_->give(open.number, lane));
    } else if (!run_segments(program_, step, pointers_, deadline_)) {
      throw_expired();
    }
  }

  void check_deadline() const {
    if (SteadyClock::now() >= deadline_) throw_expired();
  }

  void wait_for_others() {
    if (fronts_ != nullptr && (fronts_->are_under_way() || is_at_native())) return wait_for_devices();
    if (crossing_ == nullptr) throw_stuck();
    if (!patience_->glance()) pause(peer_waited_for(open(closed_)));
  }

  const BoundStep& next_step(const Open& open, std::size_t waiting) const {
    const std::uint32_t lane = open.lanes[waiting];
    return steps_of(open, lane)[open.done[lane]];
  }

  bool is_at_native() {
    if (program_.natives.empty()) return false;
    for (std::size_t round = closed_; round < opened_; ++round) {
      const Open& its = open(round);
      for (std::size_t i = 0; i < its.waiting; ++i) {
        if (next_step(its, i).op == plan::Op::kNative) return true;
      }
    }
    return false;
  }

  // Devices do not wake anybody; messages that come meanwhile are looked for in every turn, and so are
  // collectives that will never end.
  void wait_for_devices() {
    for (const auto& communicator : program_.communicators) communicator->is_ready();
    if (crossing_ != nullptr) crossing_->transport.progress();
    if (++looks_at_devices_ < kLooksAtDevices) return std::this_thread::yield();
    if (looks_at_devices_ == kLooksAtDevices) next_look_ = SteadyClock::now() + Watch::kLook;
    look_around(peer_waited_for(open(closed_)), !program_.native_ranks.empty());
    std::this_thread::sleep_for(kDeviceNap);
  }

  // The rank that the first lane that waits for one waits for; -1: none does.
  int peer_waited_for(const Open& open) const {
    for (std::size_t i = 0; i < open.waiting; ++i) {
      const BoundStep& step = next_step(open, i);
      if (step.op == plan::Op::kRecv && program_.postings[step.posting].way == Way::kIncoming) {
        return program_.postings[step.posting].place.peer;
      }
      for (const std::uint32_t number : sends(step)) {
        const Posting& posting = program_.postings[number];
        if (!may_send(open, posting)) return held_up_by(open, posting.place);
      }
    }
    return -1;
  }

  void pause(int peer) {
    if (!is_waiting_) {
      is_waiting_ = true;
      waits_for_ = peer;
      waits_since_ = SteadyClock::now();
      next_look_ = waits_since_ + Watch::kLook;
    }
    const bool slept = patience_->pause(Watch::kLook);
    if (slept || crossing_->watch.must_end()) look_around(peer, false);
  }

  // Lets the watch look when it is time to, and once more before the run ends by its deadline: so the error
  // can say for whom it waited. `is_native`: for a collective, if it is for nobody in particular.
  void look_around(int peer, bool is_native) {
    check_interrupt();
    const SteadyClock::time_point now = SteadyClock::now();
    const bool is_late = now >= deadline_;
    if (crossing_ != nullptr && (is_late || now >= next_look_ || crossing_->watch.must_end())) {
      was_looked_after_ = true;
      next_look_ = now + Watch::kLook;
      if (peer < 0 && is_native) {
        crossing_->watch.look_at_all(program_.native_ranks, first_beat());
      } else {
        crossing_->watch.look(peer, first_beat());
      }
    }
    if (is_late) throw_expired();
  }

  // A wait, if there was one, is over.
  void go_on() {
    looks_at_devices_ = 0;
    if (patience_) patience_->reset();
    if (std::exchange(was_looked_after_, false)) crossing_->watch.go_on(first_beat());
    if (!is_waiting_) return;
    is_waiting_ = false;
    const SteadyClock::duration time = SteadyClock::now() - waits_since_;
    waiting_.time += time;
    if (time <= waiting_.longest) return;
    waiting_.longest = time;
    waiting_.longest_for = waits_for_;
  }

  std::string why_waiting(const Open& open, const BoundStep& step) const {
    if (step.op == plan::Op::kWait) {
      const BoundLane& lane = program_.lanes[open.round->first_lane + step.wait_lane];
      return "for " + std::to_string(step.wait_steps) + " steps of lane " + std::to_string(lane.plan_lane);
    }
    return "for a message of worker " + std::to_string(program_.postings[step.posting].place.peer);
  }

  [[noreturn]] void throw_stuck() {
    const Open& stuck = open(closed_);
    const std::uint32_t lane = stuck.lanes.front();
    const std::uint32_t number = stuck.done[lane];
    throw Error(ErrorCode::kInternal,
                "no lane can go on: lane " +
                    std::to_string(program_.lanes[stuck.round->first_lane + lane].plan_lane) +
                    " waits at step " + std::to_string(number) + " " +
                    why_waiting(stuck, steps_of(stuck, lane)[number]) +
                    "; lanes that wait: " + std::to_string(stuck.waiting));
  }

  Instance& instance_;
  const Program& program_;
  Deadline deadline_;
  FunctionCaller* caller_;
  const Crossing* crossing_;
  Fronts* fronts_;  // null: there are no queued units
  unsigned place_;  // of the first beat, in the cycle
  std::byte* const* pointers_;
  std::size_t opened_ = 0;      // rounds
  std::size_t closed_ = 0;      // of these
  std::uint64_t steps_ = 0;     // done in all lanes
  std::uint64_t landings_ = 0;  // begun

  std::uint32_t looks_at_devices_ = 0;
  std::optional<Patience> patience_;
  Waiting waiting_;
  bool is_waiting_ = false;
  bool was_looked_after_ = false;
  int waits_for_ = -1;
  SteadyClock::time_point waits_since_;
  SteadyClock::time_point next_look_;
};

Waiting Executor::run(Instance& instance, Deadline deadline, FunctionCaller* caller,
                      const Crossing* crossing) {
  return Run(instance, deadline, caller, crossing).to_end();
}

}  // namespace onesum::exec
