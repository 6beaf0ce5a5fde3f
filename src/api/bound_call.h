// A call of one kind, bound: what is kept between calls that differ in addresses only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/describe.h"
#include "api/overlap.h"
#include "api/pairs.h"
#include "api/session.h"
#include "exec/bind.h"
#include "exec/executor.h"
#include "exec/program.h"
#include "planner/planner.h"

namespace onesum::api {

// For a call together with other processes: what this one needs to take part.
struct Crossed {
  engine::Transport* transport = nullptr;
  Fingerprint fingerprint{};  // of the call as all workers make it
  std::string text{};         // for people
  Session::KnownCall known_call{};
};

class BoundCall {
 public:
  BoundCall(const CallTraits& traits, planner::Planned planned, const exec::Site& site, Crossed crossed = {});

  const CallTraits& traits() const noexcept { return traits_; }
  const planner::Planned& planned() const noexcept { return planned_; }
  std::size_t tensors() const noexcept { return tensors_; }
  std::size_t bytes() const noexcept { return bytes_; }  // of one replica of everything

  // Handles to fresh results, one Mirrored per pair.
  std::vector<Mirrored> make_results() const;

  // Takes the addresses of the pairs' replicas, and of the results: the pairs' own, or `fresh`. Refuses
  // overlaps of the caller's results. Allocates nothing.
  void set_addresses(const Pairs& pairs, std::span<const Mirrored> fresh = {});

  // Before every run: replicas that are not to be read where they are (planner::Stream::copied_replicas).
  void copy_replicas();

  // Runs on the addresses set last, without other processes.
  void run(exec::Executor::Deadline deadline, exec::FunctionCaller* caller) {
    exec::Executor::run(instance_, deadline, caller);
  }

  // Whether a device of the plan is this process's.
  bool is_here(std::int32_t device) const;

  exec::Instance& instance() noexcept { return instance_; }
  const Crossed& crossed() const noexcept { return crossed_; }
  // Stands for what all workers call and have bound.
  std::uint64_t token() const noexcept { return token_; }

 private:
  OverlapCheck make_overlap_check() const;
  [[noreturn]] void refuse_overlap(std::pair<std::size_t, std::size_t> slots) const;
  void refuse_split_elements();
  std::string name_of_slot(std::size_t slot) const;
  struct Place;
  bool set_bases(const DistributedValues& values, planner::StreamPart part,
                 std::span<const Place> places) noexcept;
  void number_slots();
  void make_copies();
  void read_copies(const Pairs& pairs);
  void find_callers(const Pairs& pairs, std::span<const Mirrored> fresh);
  void note_streams(const DistributedValues& values, planner::StreamPart part, std::span<const Place> places);
  void note_stream(const Tensor::State& state);

  CallTraits traits_;
  planner::Planned planned_;
  exec::OwnRank own_;
  Crossed crossed_;
  // Which component of a value is at which slot.
  struct Place {
    std::uint32_t component = 0;
    std::uint32_t slot = 0;
  };
  // Of this process's replicas and results.
  struct StreamSlots {
    std::vector<Place> replicas;
    std::vector<Place> results;
  };
  std::vector<StreamSlots> slots_;  // by stream
  // A replica that is read from a copy, which has as many bytes before it as the replica's part.
  struct ReplicaCopy {
    std::size_t stream = 0;
    Place place;
    std::size_t offset = 0;
    Tensor copy;
    Tensor from{};
    Tensor to{};
  };
  std::vector<ReplicaCopy> copies_;
  exec::Instance instance_;
  std::uint64_t token_;
  OverlapCheck overlap_;
  // Of calls with GPUs: the streams of their tensors, and whether all have one.
  std::vector<exec::CallerStream> callers_;
  bool all_have_streams_ = false;
  std::size_t tensors_ = 0;
  std::size_t bytes_ = 0;
  bool has_addresses_ = false;
};

}  // namespace onesum::api
