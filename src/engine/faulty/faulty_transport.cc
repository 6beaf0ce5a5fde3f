#include "engine/faulty/faulty_transport.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <unistd.h>

namespace onesum::engine {
namespace {

bool concerns_message(FaultAction action) noexcept {
  return action == FaultAction::kDrop || action == FaultAction::kTruncate || action == FaultAction::kCorrupt;
}

void befall_process(const Fault& fault) {
  switch (fault.action) {
    case FaultAction::kDelay:
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.milliseconds));
      return;
    case FaultAction::kDie:
      kill(getpid(), SIGKILL);
      return;
    case FaultAction::kStop:
      kill(getpid(), SIGSTOP);
      return;
    case FaultAction::kExit:
      std::_Exit(fault.status);
    case FaultAction::kDrop:
    case FaultAction::kTruncate:
    case FaultAction::kCorrupt:
      return;
  }
}

}  // namespace

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> inner, FaultyOptions options)
    : inner_(std::move(inner)), options_(std::move(options)), beats_(inner_->limits().phases) {
  std::erase_if(options_.faults, [&](const Fault& fault) {
    return fault.rank.value_or(options_.rank) != options_.rank || fault.epoch != options_.epoch;
  });
}

void FaultyTransport::count(const Beat& beat) {
  const std::uint64_t operation = counted(beat).operations++;
  ++operations_;
  for (const Fault& fault : options_.faults) {
    if (fault.beat == beat.number && fault.op == operation) befall_process(fault);
  }
}

void FaultyTransport::begin(const Beat& beat, std::span<const Place> incoming) {
  last_ = beat.number % beats_.size();
  counted(beat) = {};
  count(beat);
  inner_->begin(beat, incoming);
}

void FaultyTransport::send(const Beat& beat, const Place& place) {
  count(beat);
  send(beat, place, due_for_message(beat, place));
}

// What goes wrong with a message goes wrong in the outbox, never in memory that was lent.
void FaultyTransport::send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) {
  count(beat);
  const std::vector<FaultAction> due = due_for_message(beat, place);
  if (due.empty()) return inner_->send_from(beat, place, payload);
  std::byte* next = outbox(place.box, place.peer, static_cast<unsigned>(beat.number % limits().phases));
  next += place.offset;
  for (const Stretch& stretch : payload) next = std::ranges::copy(stretch, next).out;
  send(beat, place, due);
}

void FaultyTransport::send(const Beat& beat, const Place& place, std::span<const FaultAction> due) {
  Place sent = place;
  bool is_dropped = false;
  for (const FaultAction action : due) {
    if (action == FaultAction::kDrop) is_dropped = true;
    if (action == FaultAction::kTruncate) sent.bytes /= 2;
    if (action == FaultAction::kCorrupt) corrupt(beat, place);
  }
  if (!is_dropped) inner_->send(beat, sent);
}

std::vector<FaultAction> FaultyTransport::due_for_message(const Beat& beat, const Place& place) {
  std::vector<FaultAction> due;
  std::erase_if(options_.faults, [&](const Fault& fault) {
    const bool is_due =
        concerns_message(fault.action) && fault.beat == beat.number && fault.op < counted(beat).operations;
    if (!is_due || place.bytes == 0) return false;
    due.push_back(fault.action);
    return true;
  });
  return due;
}

void FaultyTransport::corrupt(const Beat& beat, const Place& place) {
  if (options_.damage_next && options_.damage_next(place.peer)) return;
  const auto phase = static_cast<unsigned>(beat.number % limits().phases);
  const bool is_shifted = near_boxes(place.peer).room > 0 && !is_tiny(place.box);
  std::byte* const payload =
      outbox(place.box, place.peer, phase) + place.offset + (is_shifted ? beat.shift : 0);
  payload[place.bytes / 2] ^= std::byte{0x10};
}

Arrival FaultyTransport::arrival(const Beat& beat, const Place& place) {
  const Arrival arrival = inner_->arrival(beat, place);
  if (arrival == Arrival::kHere &&
      counted(beat).arrived.emplace(place.peer, is_common(place.box), place.number).second) {
    count(beat);
  }
  return arrival;
}

void FaultyTransport::finish(const Beat& beat) {
  count(beat);
  inner_->finish(beat);
}

}  // namespace onesum::engine
