// The last calls of a worker, in memory that its peers can read when it is dead.
//
// The worker writes, without a lock and without waiting; whoever reads takes what it finds. Each entry is
// atomic piece by piece, not as a whole: of a worker that is at work, the newest one may be mixed of two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/modulus.h"

namespace onesum::cluster {

enum class RecordedState : std::uint64_t { kNone, kInside, kCompleted, kFailed };

struct RecordedCall {
  std::uint64_t number = 0;
  RecordedState state = RecordedState::kNone;
  std::uint64_t token = 0;      // which all workers that call alike have in common; 0: not known yet
  std::uint64_t beat = 0;       // of all calls: how far it was
  std::int32_t waits_for = -1;  // rank
  std::string text;             // cut off where there was no room
  friend bool operator==(const RecordedCall&, const RecordedCall&) = default;
};

// "call 3 (batch_reduce …), round 7, waiting for worker 2"
std::string to_string(const RecordedCall& call);

// The writer. One thread at a time.
class FlightRecorder {
 public:
  // `memory`: aligned for pages, zero at first; outlives the recorder. Without it nothing is written.
  FlightRecorder() = default;
  explicit FlightRecorder(std::span<std::byte> memory);

  // `known`: stands for the text that describe() will be told, as long as the recorder lives; 0: nothing
  // does.
  void enter(std::uint64_t call, std::uint64_t known = 0) noexcept;
  void describe(std::string_view text) noexcept;
  void set_token(std::uint64_t token) noexcept;
  void set_progress(std::uint64_t beat, int waits_for) noexcept;
  void leave(bool has_completed) noexcept;

 private:
  struct Slot;
  Slot* slots_ = nullptr;
  Modulus num_slots_{1};
  std::vector<std::uint64_t> known_;  // whose text each slot has
  Slot* current_ = nullptr;
  std::uint64_t current_known_ = 0;
  bool has_text_ = false;
};

// What somebody's recorder has written, oldest first. Takes any bytes.
std::vector<RecordedCall> recorded_calls(std::span<const std::byte> memory);

}  // namespace onesum::cluster
