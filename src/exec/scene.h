// What the steps of one round are bound against: where operands lie, and who reaches them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "exec/layout.h"
#include "exec/mail.h"
#include "exec/program.h"
#include "exec/units.h"
#include "plan/plan.h"

namespace onesum::exec {

// All that it refers to outlives it. Operands passed to it are the plan's own.
struct Scene {
  const plan::Plan& plan;
  const Layout& layout;
  const Units& units;
  OwnRank own;
  std::span<const Posting> postings;               // of the program,
  std::span<const std::uint32_t> posting_numbers;  // in it, by message of the plan
  std::uint32_t staging_slot = 0;                  // of the lane at hand

  const plan::Buffer& buffer(const plan::Operand& operand) const { return plan.buffer(operand.buffer); }
  const plan::PackTable& table(std::int32_t pack) const { return *layout.table(pack); }
  bool is_own(std::int32_t device) const { return !own || plan.rank_of(device) == *own; }

  std::uint32_t posting_number(const plan::Operand& operand) const {
    return posting_numbers[static_cast<std::size_t>(layout.message_of(operand))];
  }
  const Posting& posting(const plan::Operand& operand) const { return postings[posting_number(operand)]; }

  // Whose memory an operand is in: all units reach what nobody owns.
  std::optional<Unit> owner_of(const plan::Operand& operand) const {
    const plan::Buffer& its = buffer(operand);
    if (its.role != plan::Role::kSlot && its.role != plan::Role::kView) return units.of(its.device);
    if (posting(operand).way == Way::kLocal) return std::nullopt;
    return kHost;
  }
  bool reaches(Unit unit, const plan::Operand& operand) const {
    const std::optional<Unit> owner = owner_of(operand);
    return !owner || units.reaches(unit, *owner);
  }
};

}  // namespace onesum::exec
