// What goes wrong on purpose, and when: for tests, and for users' own drills (ONESUM_FAULT).
//
//   faults = fault *(";" fault)
//   fault  = field *("," field)         each field at most once, in any order; do= is needed
//   field  = "rank=" number             the rank to which it happens; without it all of them
//          | "epoch=" number            of the group's lives, 0: the first (which is meant without it)
//          | "beat=" number             of the epoch, from 0 (which is meant without it)
//          | "op=" number               of the beat's operations, from 0 (which is meant without it)
//          | "do=" action
//          | "ms=" number               with do=delay, which needs it: milliseconds
//          | "status=" number           with do=exit: up to 255; without it 1
//   action = "delay" | "drop" | "truncate" | "corrupt" | "die" | "stop" | "exit"
//
// Blanks around fields and faults do not count, nor do faults that are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onesum::engine {

enum class FaultAction : std::uint8_t {
  kDelay,     // sleeps before the operation
  kDrop,      // a message is not sent
  kTruncate,  // the second half of a message is not sent
  kCorrupt,   // a byte of a message is changed on its way
  kDie,       // SIGKILL
  kStop,      // SIGSTOP
  kExit,      // ends without a word
};

// Operations of a beat are counted from 0 in the order in which the rank does them: its begin, every message
// it sends, every message it finds arrived, its finish. The fault happens once, at operation `op`, before it
// is done (an arrival: before the caller learns of it); what happens to a message happens to the first one
// sent from there on in the same beat that has a payload.
struct Fault {
  std::optional<int> rank;
  std::uint32_t epoch = 0;
  std::uint64_t beat = 0;
  std::uint64_t op = 0;
  FaultAction action = FaultAction::kDie;
  std::uint32_t milliseconds = 0;
  int status = 1;
  friend bool operator==(const Fault&, const Fault&) = default;
};

// Throws invalid_argument that names the fault, the part of it, and what is expected.
std::vector<Fault> parse_faults(std::string_view text);

// In the form that parse_faults() reads.
std::string to_string(const Fault& fault);

}  // namespace onesum::engine
