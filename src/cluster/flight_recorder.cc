#include "cluster/flight_recorder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace onesum::cluster {
namespace {

constexpr std::size_t kTextWords = 11;
constexpr std::size_t kTextBytes = kTextWords * sizeof(std::uint64_t);

}  // namespace

// Relaxed everywhere: readers look when the writer is dead, or do not mind.
struct FlightRecorder::Slot {
  std::atomic<std::uint64_t> number_after;  // the call's number plus 1; 0: never used
  std::atomic<std::uint64_t> state;
  std::atomic<std::uint64_t> token;
  std::atomic<std::uint64_t> beat;
  std::atomic<std::uint64_t> waits_for_after;  // the rank plus 1; 0: nobody
  std::array<std::atomic<std::uint64_t>, kTextWords> text;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

FlightRecorder::FlightRecorder(std::span<std::byte> memory)
    : slots_(reinterpret_cast<Slot*>(memory.data())),
      num_slots_(std::max(memory.size() / sizeof(Slot), std::size_t{1})),
      known_(memory.size() / sizeof(Slot)) {}

void FlightRecorder::enter(std::uint64_t call, std::uint64_t known) noexcept {
  if (known_.empty()) return;
  const auto slot = static_cast<std::size_t>(num_slots_.of(call));
  current_ = &slots_[slot];
  current_known_ = known;
  has_text_ = known != 0 && known_[slot] == known;
  current_->state.store(static_cast<std::uint64_t>(RecordedState::kInside), std::memory_order_relaxed);
  current_->number_after.store(call + 1, std::memory_order_relaxed);
  current_->token.store(0, std::memory_order_relaxed);
  current_->waits_for_after.store(0, std::memory_order_relaxed);
  if (has_text_) return;
  current_->text[0].store(0, std::memory_order_relaxed);
  known_[slot] = 0;
}

void FlightRecorder::describe(std::string_view text) noexcept {
  if (current_ == nullptr || has_text_) return;
  known_[static_cast<std::size_t>(current_ - slots_)] = current_known_;
  std::array<std::uint64_t, kTextWords> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), kTextBytes));
  for (std::size_t i = 0; i < kTextWords; ++i) current_->text[i].store(words[i], std::memory_order_relaxed);
}

void FlightRecorder::set_token(std::uint64_t token) noexcept {
  if (current_ != nullptr) current_->token.store(token, std::memory_order_relaxed);
}

void FlightRecorder::set_progress(std::uint64_t beat, int waits_for) noexcept {
  if (current_ == nullptr) return;
  current_->beat.store(beat, std::memory_order_relaxed);
  current_->waits_for_after.store(static_cast<std::uint64_t>(waits_for) + 1, std::memory_order_relaxed);
}

void FlightRecorder::leave(bool has_completed) noexcept {
  if (current_ == nullptr) return;
  const RecordedState state = has_completed ? RecordedState::kCompleted : RecordedState::kFailed;
  current_->state.store(static_cast<std::uint64_t>(state), std::memory_order_relaxed);
  current_ = nullptr;
}

std::vector<RecordedCall> recorded_calls(std::span<const std::byte> memory) {
  // As numbers: the memory is another process's, and only read.
  struct Raw {
    std::uint64_t number_after, state, token, beat, waits_for_after;
    std::array<char, kTextBytes> text;
  };
  std::vector<RecordedCall> calls;
  for (; memory.size() >= sizeof(Raw); memory = memory.subspan(sizeof(Raw))) {
    Raw raw;
    std::memcpy(&raw, memory.data(), sizeof raw);
    if (raw.number_after == 0 || raw.state == 0 ||
        raw.state > static_cast<std::uint64_t>(RecordedState::kFailed))
      continue;
    RecordedCall call;
    call.number = raw.number_after - 1;
    call.state = static_cast<RecordedState>(raw.state);
    call.token = raw.token;
    call.beat = raw.beat;
    call.waits_for =
        raw.waits_for_after > INT32_MAX ? -1 : static_cast<std::int32_t>(raw.waits_for_after) - 1;
    call.text.assign(raw.text.begin(), std::ranges::find(raw.text, '\0'));
    calls.push_back(std::move(call));
  }
  std::ranges::sort(calls, {}, &RecordedCall::number);
  return calls;
}

std::string to_string(const RecordedCall& call) {
  std::string text = fmt::format("call {}", call.number);
  if (!call.text.empty()) text += fmt::format(" ({})", call.text);
  if (call.state == RecordedState::kCompleted) return text + ", which it completed";
  if (call.state == RecordedState::kFailed) return text + ", which failed";
  if (call.token != 0) text += fmt::format(", round {}", call.beat);
  if (call.waits_for >= 0) text += fmt::format(", waiting for worker {}", call.waits_for);
  return text;
}

}  // namespace onesum::cluster
