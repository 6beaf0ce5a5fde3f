// Where the messages of a round lie: between lanes of this process in memory of its own, to and from other
// processes in the outboxes of a transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/transport.h"
#include "exec/messages.h"
#include "plan/plan.h"

namespace onesum::exec {

// Which ranks of a plan live in this process; nullopt: all of them.
using OwnRank = std::optional<int>;

enum class Way : std::uint8_t {
  kForeign,  // between other processes
  kLocal,    // both ends are here
  kOutgoing,
  kIncoming,
};

struct Posting {
  Way way = Way::kForeign;
  engine::Place place;  // kLocal: its offset in the memory for local messages
  // By its own destination; else by that of an earlier one with the same content, which, of a common one, is
  // sent for both.
  bool is_written = true;
  std::uint32_t first_stretch = 0;  // of a payload that is lent: in Program::stretches
  std::uint32_t num_stretches = 0;
};

// Native collectives carry nothing that tells one call from another. Before a rank joins one with others it
// hears from the rank before it, in a circle of all that do, and tells the one after it: empty messages,
// which carry what all messages carry. If any two of them are in different calls, two ranks notice, and the
// collective cannot be completed.
struct Greetings {
  Posting to_next;
  Posting from_previous;
};

struct Mail {
  std::vector<Posting> postings;  // by message of the plan
  std::size_t local_bytes = 0;    // of all local messages together
  std::optional<Greetings> greetings{};
};

// The ranks that join others in native collectives, ascending.
std::vector<int> ranks_in_native_groups(const plan::Plan& plan);

// `bytes`: of each message of the plan; -1 of those that the round does not have. `near`: by rank, of the
// transport; none: empty.
Mail deal_mail(const plan::Plan& plan, const Messages& messages, std::span<const std::int64_t> bytes,
               OwnRank own, std::span<const engine::NearBoxes> near);

}  // namespace onesum::exec
