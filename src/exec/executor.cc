#include "exec/executor.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <onesum/error.h>

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

// One run. Lanes take turns: a step that has to wait leaves the turn to the next lane. A verified plan always
// has a lane that can go on, or waits for another process.
class Executor::Run {
 public:
  Run(Instance& instance, Deadline deadline, FunctionCaller* caller, const Crossing* crossing)
      : instance_(instance),
        program_(instance.program()),
        deadline_(deadline),
        caller_(caller),
        crossing_(crossing),
        pointers_(instance.pointers(crossing_ == nullptr ? 0 : crossing_->first_beat)) {
    if (crossing_ == nullptr) return;
    patience_.emplace(crossing_->transport, crossing_->is_crowded);
    beat_ = {crossing_->first_beat, crossing_->token};
  }

  Waiting to_end() {
    for (const BoundRound& round : program_.rounds) {
      begin(round);
      run_round();
      if (crossing_ != nullptr) crossing_->transport.finish(beat_);
      ++beat_.number;
    }
    if (crossing_ != nullptr) flush();
    return waiting_;
  }

 private:
  // Steps between two looks at the clock. (Steps of several segments look at it by themselves.)
  static constexpr std::uint64_t kStepsPerLook = 64;

  void begin(const BoundRound& round) {
    round_ = &round;
    std::fill_n(instance_.done_.begin(), round.num_lanes, 0);
    std::fill_n(instance_.sent_.begin(), round.num_postings, 0);
    if (crossing_ == nullptr) return;
    crossing_->watch.begin(beat_.number);
    crossing_->transport.begin(
        beat_, std::span(program_.incoming).subspan(round.first_incoming, round.num_incoming));
  }

  void run_round() {
    std::vector<std::uint32_t>& lanes = instance_.lanes_;
    std::size_t waiting = 0;
    for (std::uint32_t lane = 0; lane < round_->num_lanes; ++lane) {
      if (!advance(lane)) lanes[waiting++] = lane;
    }
    while (waiting > 0) {
      if (crossing_ == nullptr) check_deadline();
      const std::uint64_t steps_before = steps_;
      std::size_t still_waiting = 0;
      for (std::size_t i = 0; i < waiting; ++i) {
        const std::uint32_t lane = lanes[i];
        if (!advance(lane)) lanes[still_waiting++] = lane;
      }
      if (steps_ == steps_before) {
        wait_for_others(waiting);
      } else {
        go_on();
      }
      waiting = still_waiting;
    }
    go_on();
  }

  // Everything that this rank owes is on its way without further help.
  void flush() {
    while (!crossing_->transport.is_flushed()) pause(-1);
    go_on();
  }

  std::span<const BoundStep> steps_of(std::size_t lane) const {
    const BoundLane& bound = program_.lanes[round_->first_lane + lane];
    return std::span(program_.steps).subspan(bound.first_step, bound.num_steps);
  }

  // Runs the steps of a lane until one has to wait; says whether the lane is at its end.
  bool advance(std::size_t lane) {
    const std::span<const BoundStep> steps = steps_of(lane);
    std::uint32_t& done = instance_.done_[lane];
    for (; done < steps.size(); ++done) {
      const BoundStep& step = steps[done];
      if (!can_run(step)) return false;
      perform(step);
      if (++steps_ % kStepsPerLook == 0) check_deadline();
    }
    return true;
  }

  std::span<const std::uint32_t> sends(const BoundStep& step) const {
    return std::span(program_.sends).subspan(step.first_send, step.num_sends);
  }
  std::uint8_t& sent(std::uint32_t posting) { return instance_.sent_[posting - round_->first_posting]; }

  bool can_run(const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
        return instance_.done_[step.wait_lane] >= step.wait_steps;
      case plan::Op::kRecv:
        return has_arrived(step.posting);
      default:
        return std::ranges::all_of(
            sends(step), [&](std::uint32_t posting) { return may_send(program_.postings[posting]); });
    }
  }

  bool has_arrived(std::uint32_t number) {
    const Posting& posting = program_.postings[number];
    if (posting.way == Way::kLocal) return sent(number) != 0;
    const engine::Arrival arrival = crossing_->transport.arrival(beat_, posting.place);
    if (arrival == engine::Arrival::kNotYet) return false;
    if (arrival != engine::Arrival::kHere) crossing_->watch.refuse(posting.place.peer, arrival);
    return true;
  }

  bool may_send(const Posting& posting) const {
    return posting.way == Way::kLocal || crossing_->transport.may_send(beat_, posting.place.peer);
  }

  void perform(const BoundStep& step) {
    switch (step.op) {
      case plan::Op::kWait:
      case plan::Op::kRecv:
        break;
      case plan::Op::kCall:
        instance_.bases_[step.result_slot] =
            caller_->call({step.pack, step.device, {pointers_ + step.first_source, step.num_sources}});
        instance_.resolve();
        check_deadline();
        break;
      default:
        if (step.num_segments > 0) run_arithmetic(step);
        for (const std::uint32_t posting : sends(step)) send(posting);
        break;
    }
  }

  void send(std::uint32_t number) {
    const Posting& posting = program_.postings[number];
    if (posting.way == Way::kLocal) {
      sent(number) = 1;
    } else {
      crossing_->transport.send(beat_, posting.place);
    }
  }

  void run_arithmetic(const BoundStep& step) const {
    if (!run_segments(program_, step, pointers_, deadline_)) throw_expired();
  }

  void check_deadline() const {
    if (SteadyClock::now() >= deadline_) throw_expired();
  }

  void wait_for_others(std::size_t waiting) {
    if (crossing_ == nullptr) throw_stuck(waiting);
    pause(peer_waited_for(waiting));
  }

  // The rank that the first lane that waits for one waits for; -1: none does.
  int peer_waited_for(std::size_t waiting) {
    for (std::size_t i = 0; i < waiting; ++i) {
      const std::uint32_t lane = instance_.lanes_[i];
      const BoundStep& step = steps_of(lane)[instance_.done_[lane]];
      if (step.op == plan::Op::kRecv && program_.postings[step.posting].way == Way::kIncoming) {
        return program_.postings[step.posting].place.peer;
      }
      for (const std::uint32_t posting : sends(step)) {
        if (!may_send(program_.postings[posting])) return program_.postings[posting].place.peer;
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
    if (!slept && !crossing_->watch.must_end()) return;
    check_deadline();
    if (crossing_->watch.must_end() || SteadyClock::now() >= next_look_) {
      crossing_->watch.look(peer, beat_.number);
      was_looked_after_ = true;
      next_look_ = SteadyClock::now() + Watch::kLook;
    }
  }

  // A wait, if there was one, is over.
  void go_on() {
    if (!is_waiting_) return;
    is_waiting_ = false;
    patience_->reset();
    if (std::exchange(was_looked_after_, false)) crossing_->watch.go_on(beat_.number);
    const SteadyClock::duration time = SteadyClock::now() - waits_since_;
    waiting_.time += time;
    if (time <= waiting_.longest) return;
    waiting_.longest = time;
    waiting_.longest_for = waits_for_;
  }

  std::string why_waiting(const BoundStep& step) const {
    if (step.op == plan::Op::kWait) {
      const BoundLane& lane = program_.lanes[round_->first_lane + step.wait_lane];
      return "for " + std::to_string(step.wait_steps) + " steps of lane " + std::to_string(lane.plan_lane);
    }
    return "for a message of worker " + std::to_string(program_.postings[step.posting].place.peer);
  }

  [[noreturn]] void throw_stuck(std::size_t waiting) const {
    const std::uint32_t lane = instance_.lanes_.front();
    const std::uint32_t number = instance_.done_[lane];
    throw Error(ErrorCode::kInternal,
                "no lane can go on: lane " +
                    std::to_string(program_.lanes[round_->first_lane + lane].plan_lane) + " waits at step " +
                    std::to_string(number) + " " + why_waiting(steps_of(lane)[number]) +
                    "; lanes that wait: " + std::to_string(waiting));
  }

  Instance& instance_;
  const Program& program_;
  Deadline deadline_;
  FunctionCaller* caller_;
  const Crossing* crossing_;
  std::byte* const* pointers_;
  const BoundRound* round_ = nullptr;
  engine::Beat beat_;
  std::uint64_t steps_ = 0;  // done in all lanes

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
