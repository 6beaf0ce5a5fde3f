// Whether a plan is a plan at all: every number in it refers to something that exists and is of the right
// kind, runs of chunks lie in their buffers' windows, a step has the operands of its operation, fields that
// an operation does not use have their default values, and operands are laid out in the order of lanes and
// steps.
//
// All functions of plan/* but this one take well-formed plans only; what Builder and parse_text give is well
// formed (Builder's if the numbers it was given are). Whether a plan makes sense is for plan/verify.h to say.
#pragma once

#include "plan/plan.h"

namespace onesum::plan {

inline constexpr std::int32_t kMaxRank = 65535;
inline constexpr std::uint32_t kMaxChunks = 1u << 20;  // of a pack
inline constexpr std::size_t kMaxSplitLevels = 8;
inline constexpr std::size_t kMaxNameLength = 200;  // of algorithm and order

// What a fault was found in.
struct Place {
  enum class Kind : std::uint8_t { kPlan, kPack, kChannel, kGroup, kBuffer, kLane, kStep };
  Kind kind = Kind::kPlan;
  std::size_t number = 0;  // of the pack, channel, group, buffer or lane
  std::size_t step = 0;    // kStep: in lane `number`
};

// Throws invalid_argument naming the first thing that is wrong, what was found and what was expected;
// `place`, if given, then says where.
void check_well_formed(const Plan& plan, Place* place = nullptr);

}  // namespace onesum::plan
