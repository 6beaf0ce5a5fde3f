// What the lanes of a run have given to devices that work by themselves, and how far these are.
//
// Each lane has a *front*: the queue that holds its last work, or none if the host knows that all of it is
// done. Steps of a lane follow each other: where one goes to another queue than the one before, that queue is
// told to wait; where the host is to go on, it has to ask until the device has come so far.
//
// What a queue is told to wait for was given to another queue before, so that whatever was given comes to its
// end by itself. Collectives between processes do not: what comes after one of these is not given before it
// is done, or a queue that lanes share could hold up what another process waits for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device.h"
#include "engine/native.h"
#include "exec/program.h"

namespace onesum::exec {

class Fronts {
 public:
  // `rounds`: that may be under way at a time. `lanes`: the most that one of them has.
  Fronts(const Program& program, std::size_t rounds, std::size_t lanes);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  void set_callers(std::span<const CallerStream> streams, bool may_return_early);

  // Of one run, which comes after what the callers' streams were given.
  void begin();

  // From now on the lane is at work in `unit`. False: the host has to wait for it.
  bool move(std::size_t open, std::uint32_t lane, Unit unit);
  // What the lane does from now on, in the unit it was moved to, comes after all that `other` was given so
  // far. False: the host has to wait for it.
  bool follow(std::size_t open, std::uint32_t lane, std::uint32_t other);
  // Where the lane's work goes; it was moved to a queued unit.
  engine::Queue& give(std::size_t open, std::uint32_t lane);

  // A native collective comes after the lane's work so far, on all devices of the communicator; and what the
  // lane does from now on comes after it. `spans_processes`: it may wait for others, and no queue may.
  void enter(std::size_t open, std::uint32_t lane, engine::Communicator& communicator);
  void leave(std::size_t open, std::uint32_t lane, engine::Communicator& communicator, bool spans_processes);

  // Whether the host knows that the lanes [0, lanes) have nothing under way.
  bool are_done(std::size_t open, std::uint32_t lanes);

  // Whether any lane has something under way, as far as the host knows.
  bool are_under_way() const noexcept;

  // Whether a run of this program may end when everything is given.
  bool may_return_early() const noexcept { return may_return_early_; }
  // Ends such a run: the callers' streams wait for what is under way in round 0.
  void hand_over(std::uint32_t lanes);

  // Whether all devices that the program uses are well. Throws if one is not: what was given to it is lost,
  // and what waited for it has gone on.
  void check_devices();

  // Wait until nothing is under way; a device that has failed does nothing any more. False: it took longer.
  bool drain(std::chrono::milliseconds longest) noexcept;
  // The same after an error in the middle of a run: also for what no front tells of.
  bool drain_queues(std::chrono::milliseconds longest) noexcept;

 private:
  struct Front {
    engine::Queue* queue = nullptr;
    Unit unit = kHost;
    bool is_recorded = false;          // its mark covers all that it was given
    bool may_wait_for_others = false;  // for other processes: whoever follows has to ask, and no queue waits
  };

  Front& front(std::size_t open, std::uint32_t lane) { return fronts_[open * lanes_ + lane]; }
  engine::Mark& mark(std::size_t open, std::uint32_t lane, Unit unit) {
    return *marks_[(open * lanes_ + lane) * program_.queued.size() + unit - 1];
  }
  engine::QueuedEngine& engine(Unit unit) const { return *program_.queued[unit - std::size_t{1}]; }
  engine::Queue& queue(std::uint32_t lane, Unit unit) const { return engine(unit).queue(lane); }
  bool is_at_rest(std::size_t open, std::uint32_t lane) noexcept;
  Unit unit_of(int device) const;
  engine::Mark& recorded(std::size_t open, std::uint32_t lane);
  void let_all_wait_for(engine::Mark& mark);

  const Program& program_;
  std::size_t lanes_;
  std::vector<Front> fronts_;                         // by round under way and lane
  std::vector<std::unique_ptr<engine::Mark>> marks_;  // and by unit
  // The queues that the program gives work to, and a mark for each.
  struct Used {
    engine::Queue* queue = nullptr;
    std::unique_ptr<engine::Mark> mark{};
  };
  void use(engine::Queue& queue, Unit unit);
  std::vector<Used> used_;
  bool gives_all_to_queues_ = false;
  bool may_return_early_ = false;
  std::vector<CallerStream> callers_;
  std::vector<std::unique_ptr<engine::Mark>> caller_marks_;
};

}  // namespace onesum::exec
