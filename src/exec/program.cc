#include "exec/program.h"

#include <algorithm>
#include <chrono>

#include <onesum/error.h>

#include "exec/fronts.h"

namespace onesum::exec {
namespace {

// What a device was given takes milliseconds, unless it hangs.
constexpr std::chrono::seconds kLongestDrain{10};
constexpr std::chrono::seconds kPatience{1};

bool is_well(engine::Communicator& communicator) noexcept {
  try {
    return communicator.is_ready();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Instance::Instance(std::shared_ptr<const Program> program, engine::Transport* transport)
    : program_(std::move(program)) {
  const Program& p = *program_;
  bases_.resize(p.slots());
  pointers_.resize(p.pointers.size() * p.cycle());
  is_resolved_.resize(p.cycle());
  std::uint32_t most_lanes = 0;
  std::uint32_t most_postings = 0;
  for (const BoundRound& round : p.rounds) {
    most_lanes = std::max(most_lanes, round.num_lanes);
    most_postings = std::max(most_postings, round.num_postings);
  }
  open_.resize(p.window.divisor());
  for (Open& open : open_) {
    open.done.resize(most_lanes);
    open.lanes.resize(most_lanes);
    open.given.resize(most_lanes);
    open.sent.resize(most_postings);
  }
  if (!p.peers.empty()) find_boxes(*transport);
  for (const BoundNative& native : p.natives) {
    const std::size_t shares = native.num_counts * p.communicators[native.communicator]->devices();
    shares_.resize(std::max(shares_.size(), shares));
  }
  if (!p.queued.empty()) fronts_ = std::make_unique<Fronts>(p, p.window.divisor(), most_lanes);
  allocate_memory();
}

Instance::~Instance() {
  if (fronts_ != nullptr && !fronts_->drain(kLongestDrain)) is_lost_ = true;
  release_memory();
}

void Instance::set_callers(std::span<const CallerStream> streams, bool may_return_early) {
  fronts_->set_callers(streams, may_return_early);
}

void Instance::give_up() noexcept {
  for (const BoundNative& native : program_->natives) {
    engine::Communicator& its = *program_->communicators[native.communicator];
    if (!its.is_aborted() && (native.spans_processes || !is_well(its))) its.abort();
  }
  // What is of this process alone ends by itself, and calls that returned early count on that.
  if (fronts_->drain_queues(kPatience)) return;
  for (const auto& communicator : program_->communicators) communicator->abort();
  if (!fronts_->drain_queues(kLongestDrain)) is_lost_ = true;
}

void Instance::allocate_memory() {
  const Program& p = *program_;
  try {
    for (std::size_t slot = p.tensor_slots; slot < p.first_box(); ++slot) {
      const Memory& memory = p.memory_of(slot);
      if (memory.bytes == 0) continue;
      void* const address = memory.is_staging      ? p.queued.front()->allocate_staging(memory.bytes)
                            : memory.unit == kHost ? p.host->allocate(memory.bytes)
                                                   : p.queued[memory.unit - 1u]->allocate(memory.bytes);
      bases_[slot] = static_cast<std::byte*>(address);
    }
  } catch (...) {
    release_memory();
    throw;
  }
}

void Instance::release_memory() noexcept {
  const Program& p = *program_;
  if (is_lost_) return;
  for (std::size_t slot = p.tensor_slots; slot < p.first_box(); ++slot) {
    const Memory& memory = p.memory_of(slot);
    if (memory.bytes == 0 || bases_[slot] == nullptr) continue;
    if (memory.is_staging) {
      p.queued.front()->release_staging(bases_[slot], memory.bytes);
    } else if (memory.unit == kHost) {
      p.host->release(bases_[slot], memory.bytes);
    } else {
      p.queued[memory.unit - 1u]->release(bases_[slot], memory.bytes);
    }
  }
}

void Instance::find_boxes(engine::Transport& transport) {
  const Program& p = *program_;
  std::size_t slot = p.first_box();
  for (unsigned beat = 0; beat < p.cycle(); ++beat) {
    const unsigned phase = beat % p.phases;
    for (const int peer : p.peers) {
      const bool takes_turns = transport.near_boxes(peer).room > 0;
      for (std::size_t number = 0; number < engine::kBoxes; ++number) {
        const auto box = static_cast<engine::Box>(number);
        const bool is_moved = takes_turns && !engine::is_tiny(box);
        const std::size_t offset = is_moved ? p.shift(beat) : 0;
        bases_[slot++] = transport.outbox(box, peer, phase) + offset;
        // Read only; pointers to sources and destinations are kept in one table.
        bases_[slot++] = const_cast<std::byte*>(transport.inbox(box, peer, phase)) + offset;
      }
    }
  }
}

unsigned Instance::place_of(std::uint64_t beat) noexcept {
  const unsigned cycle = program_->cycle();
  std::uint64_t place = last_place_ + (beat - last_beat_);
  if (place >= cycle) place = place < 2 * std::uint64_t{cycle} ? place - cycle : beat % cycle;
  last_beat_ = beat;
  last_place_ = static_cast<unsigned>(place);
  return last_place_;
}

void Instance::resolve(unsigned place) noexcept {
  const Program& p = *program_;
  const std::size_t first_box = p.first_box();
  const std::size_t boxes = p.slots() - first_box;
  const std::size_t turned = place * kBoxesOfPair * p.peers.size();
  std::byte** pointer = pointers_.data() + place * p.pointers.size();
  for (const PointerSource& source : p.pointers) {
    std::size_t slot = source.slot;
    if (slot >= first_box) slot = first_box + (slot - first_box + turned) % boxes;
    *pointer++ = bases_[slot] + source.byte_offset;
  }
  is_resolved_[place] = true;
}

}  // namespace onesum::exec
