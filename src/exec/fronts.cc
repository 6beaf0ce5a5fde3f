#include "exec/fronts.h"

#include <algorithm>
#include <thread>

#include <onesum/error.h>

namespace onesum::exec {
namespace {

bool is_work_of_host(const BoundStep& step) { return plan::is_work(step.op) && step.unit == kHost; }

}  // namespace

Fronts::Fronts(const Program& program, std::size_t rounds, std::size_t lanes)
    : program_(program), lanes_(lanes), fronts_(rounds * lanes) {
  for (std::size_t i = 0; i < fronts_.size(); ++i) {
    for (engine::QueuedEngine* const engine : program.queued) marks_.push_back(engine->make_mark());
  }
  for (const BoundRound& round : program.rounds) {
    for (std::uint32_t lane = 0; lane < round.num_lanes; ++lane) {
      const BoundLane& bound = program.lanes[round.first_lane + lane];
      for (std::uint32_t s = 0; s < bound.num_steps; ++s) {
        const BoundStep& step = program.steps[bound.first_step + s];
        if (step.unit != kHost) use(queue(lane, step.unit), step.unit);
      }
    }
  }
  for (const auto& communicator : program.communicators) {
    for (std::size_t d = 0; d < communicator->devices(); ++d) {
      use(communicator->queue(d), unit_of(communicator->device(d)));
    }
  }
  // Messages to other processes are the host's work, greetings before collectives with them among these.
  gives_all_to_queues_ = program.rounds.size() == 1 && std::ranges::none_of(program.steps, is_work_of_host);
}

void Fronts::use(engine::Queue& queue, Unit unit) {
  const auto is_it = [&](const Used& used) { return used.queue == &queue; };
  if (std::ranges::none_of(used_, is_it)) used_.push_back({&queue, engine(unit).make_mark()});
}

void Fronts::set_callers(std::span<const CallerStream> streams, bool may_return_early) {
  may_return_early_ = may_return_early && gives_all_to_queues_;
  if (std::ranges::equal(streams, callers_)) return;
  callers_.assign(streams.begin(), streams.end());
  caller_marks_.clear();
  for (const CallerStream& caller : callers_) caller_marks_.push_back(engine(caller.unit).make_mark());
}

void Fronts::let_all_wait_for(engine::Mark& mark) {
  for (const Used& used : used_) used.queue->wait_for(mark);
}

void Fronts::begin() {
  for (std::size_t i = 0; i < fronts_.size(); ++i) {  // of a run that ended early
    if (fronts_[i].queue == nullptr) continue;
    let_all_wait_for(recorded(i / lanes_, static_cast<std::uint32_t>(i % lanes_)));
    fronts_[i] = {};
  }
  for (std::size_t c = 0; c < callers_.size(); ++c) {
    engine(callers_[c].unit).record(callers_[c].stream, *caller_marks_[c]);
    let_all_wait_for(*caller_marks_[c]);
  }
}

engine::Mark& Fronts::recorded(std::size_t open, std::uint32_t lane) {
  Front& its = front(open, lane);
  engine::Mark& last = mark(open, lane, its.unit);
  if (!its.is_recorded) {
    its.queue->record(last);
    its.is_recorded = true;
  }
  return last;
}

bool Fronts::move(std::size_t open, std::uint32_t lane, Unit unit) {
  Front& its = front(open, lane);
  engine::Queue* const next = unit == kHost ? nullptr : &queue(lane, unit);
  if (its.queue == next) return true;
  if (its.queue != nullptr) {
    engine::Mark& last = recorded(open, lane);
    if (next == nullptr || its.may_wait_for_others) {
      if (!last.is_reached()) return false;
    } else {
      next->wait_for(last);
    }
  }
  its = {next, unit};
  return true;
}

bool Fronts::follow(std::size_t open, std::uint32_t lane, std::uint32_t other) {
  const Front& before = front(open, other);
  if (before.queue == nullptr || other == lane) return true;
  Front& its = front(open, lane);
  if (its.queue == nullptr || before.may_wait_for_others) return recorded(open, other).is_reached();
  if (its.queue == before.queue) return true;
  its.queue->wait_for(recorded(open, other));
  its.is_recorded = false;
  return true;
}

engine::Queue& Fronts::give(std::size_t open, std::uint32_t lane) {
  Front& its = front(open, lane);
  its.is_recorded = false;
  return *its.queue;
}

void Fronts::enter(std::size_t open, std::uint32_t lane, engine::Communicator& communicator) {
  if (front(open, lane).queue == nullptr) return;
  engine::Mark& last = recorded(open, lane);
  for (std::size_t d = 0; d < communicator.devices(); ++d) communicator.queue(d).wait_for(last);
}

// The queue of the first device waits for the others, and stands for all of them.
void Fronts::leave(std::size_t open, std::uint32_t lane, engine::Communicator& communicator,
                   bool spans_processes) {
  for (std::size_t d = 1; d < communicator.devices(); ++d) {
    engine::Mark& done = mark(open, lane, unit_of(communicator.device(d)));
    communicator.queue(d).record(done);
    communicator.queue(0).wait_for(done);
  }
  front(open, lane) = {&communicator.queue(0), unit_of(communicator.device(0)), false, spans_processes};
}

Unit Fronts::unit_of(int device) const {
  const auto found = std::ranges::find_if(
      program_.queued, [&](const engine::QueuedEngine* engine) { return engine->index() == device; });
  return static_cast<Unit>(found - program_.queued.begin() + 1);
}

bool Fronts::are_done(std::size_t open, std::uint32_t lanes) {
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    if (!move(open, lane, kHost)) return false;
  }
  return true;
}

bool Fronts::are_under_way() const noexcept {
  return std::ranges::any_of(fronts_, [](const Front& its) { return its.queue != nullptr; });
}

void Fronts::hand_over(std::uint32_t lanes) {
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    if (front(0, lane).queue == nullptr) continue;
    engine::Mark& last = recorded(0, lane);
    for (const CallerStream& caller : callers_) engine(caller.unit).let_wait(caller.stream, last);
  }
}

void Fronts::check_devices() {
  for (engine::QueuedEngine* const its : program_.queued) its->check();
}

bool Fronts::drain(std::chrono::milliseconds longest) noexcept {
  const auto until = std::chrono::steady_clock::now() + longest;
  for (std::size_t i = 0; i < fronts_.size(); ++i) {
    while (!is_at_rest(i / lanes_, static_cast<std::uint32_t>(i % lanes_))) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return true;
}

bool Fronts::drain_queues(std::chrono::milliseconds longest) noexcept {
  const auto until = std::chrono::steady_clock::now() + longest;
  for (const Used& used : used_) {
    try {
      used.queue->record(*used.mark);
      while (!used.mark->is_reached()) {
        if (std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    } catch (const Error&) {
      continue;  // its device has failed
    }
  }
  return true;
}

bool Fronts::is_at_rest(std::size_t open, std::uint32_t lane) noexcept {
  try {
    return move(open, lane, kHost);
  } catch (const Error&) {
    front(open, lane) = {};
    return true;
  }
}

}  // namespace onesum::exec
