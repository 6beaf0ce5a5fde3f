// What workers tell each other while an epoch lasts: where they are, what they call, and what ended it.
//
// Pure values with their form as bytes; epoch.h sends and receives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <onesum/error.h>

namespace onesum::cluster {

// Kinds of messages on a connection after the rendezvous.
enum class Tell : std::uint16_t {
  kWhereabouts = 256,
  kGoodbye,
  kStatement,
  kQuestion,
  kAnswer,
  kAccusation,
  kVerdict,
  kJoining,  // these four: shrinking.h
  kProposal,
  kAssent,
  kDecision,
  kSetUp,  // what transports need before the first call
};

using Bytes = std::vector<std::byte>;

// Where a worker is; sent now and then.
struct Whereabouts {
  std::uint64_t calls = 0;  // entered so far
  bool is_inside = false;   // the last one of them
  std::uint64_t beats = 0;  // done so far
  std::int32_t waits_for = -1;
  friend bool operator==(const Whereabouts&, const Whereabouts&) = default;
};

enum class Subject : std::uint8_t { kTensors, kBarrier, kDuplicate, kSplit, kShrink };

// What a worker calls, in its own words.
struct Statement {
  std::uint64_t call = 0;  // its number
  Subject subject = Subject::kTensors;
  bool is_refused = false;
  ErrorCode code = ErrorCode::kInvalidArgument;  // of a refused one
  std::string text = {};                         // for people: the call, or why it was refused
  Bytes request = {};                            // for the other workers: what is asked for, exactly
  friend bool operator==(const Statement&, const Statement&) = default;
};

// Why the epoch is to end, or why it has ended.
struct Verdict {
  ErrorCode code = ErrorCode::kAborted;
  std::int32_t suspect = -1;  // the worker to look at; -1: none in particular
  std::uint64_t call = 0;
  std::string text;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

Bytes to_bytes(const Whereabouts& whereabouts);
Bytes to_bytes(const Statement& statement);
Bytes to_bytes(const Verdict& verdict);
// Throw invalid_argument for bytes that are none.
Whereabouts whereabouts_from(std::span<const std::byte> bytes);
Statement statement_from(std::span<const std::byte> bytes);
Verdict verdict_from(std::span<const std::byte> bytes);

}  // namespace onesum::cluster
