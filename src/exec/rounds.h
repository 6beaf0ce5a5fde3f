// How a call is cut into rounds, so that all messages of a round fit between any two ranks.
//
// A plan is symbolic in size: a round runs all of it on a part of each pack. A part of a sum takes the same
// run of elements of every chunk, so that each element stays in its chunk, and with it the order in which it
// is added: results do not depend on how a call is cut. Rounds are made outside of the plan, and not by
// cutting its messages, because a plan is proved for whole messages: a ring whose messages were sent piece by
// piece could come to a stop. A pack that a user's function takes whole is cut around its call
// (exec/stages.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/transport.h"
#include "exec/messages.h"
#include "plan/pack_table.h"
#include "plan/plan.h"

namespace onesum::exec {

// Which steps of a pack with a call a part has.
enum class Stage : std::uint8_t { kAll, kBeforeCall, kAfterCall };

// A part of a pack, or all of it.
struct Part {
  std::int32_t pack = 0;
  plan::PackTable table;
  std::vector<std::size_t> chunk_lengths{};  // elements of each chunk; none: as the pack's split says
  Stage stage = Stage::kAll;  // if another: temporaries hold the whole pack, from round to round
  std::size_t first = 0;      // the part's first element in it
};

// Whether a part has the messages, and the steps, on that side of its call.
inline bool has_side(const Part& part, bool after_call) noexcept {
  return part.stage == Stage::kAll || (part.stage == Stage::kAfterCall) == after_call;
}

// Where a run of chunks lies in (each row of) a part.
plan::Extent extent_of(const Part& part, const plan::Split& split, plan::Chunks chunks);

using Round = std::vector<Part>;  // packs ascending

// What a message takes of an outbox: its header, and its payload rounded up to the alignment.
std::size_t room_of(std::size_t payload_bytes) noexcept;

// Every pack is in at least one round, also if it has no elements. Depends on the plan, the sizes and the
// limits only, so that all ranks cut alike. Throws unimplemented if the messages of a single element
// exceed the limits, or a call that reads messages where they are cannot have them all at once.
std::vector<Round> rounds_of(const plan::Plan& plan, const Messages& messages,
                             std::span<const plan::PackTable> tables, const engine::Limits& limits);

// What these rounds need of an outbox between two ranks, or of a common one, at most: alike on all ranks,
// too.
std::size_t fullest_outbox(const plan::Plan& plan, const Messages& messages, std::span<const Round> rounds,
                           const engine::Limits& limits);

}  // namespace onesum::exec
