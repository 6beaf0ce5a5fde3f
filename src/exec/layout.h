// Where the operands of a plan's steps lie in one round: tensors, temporaries and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/mail.h"
#include "exec/messages.h"
#include "exec/program.h"
#include "exec/rounds.h"
#include "plan/plan.h"

namespace onesum::exec {

// The outboxes of the transport, as a program uses them; `fullest`: what one has to hold in a round.
struct Boxes {
  unsigned phases = 1;
  std::span<const engine::NearBoxes> near{};  // by rank; none: empty
  std::size_t fullest = 0;
};

// The slots of memory that is not a tensor's (Program).
struct SlotNumbers {
  SlotNumbers(const plan::Plan& plan, const Messages& messages, std::size_t tensor_slots, OwnRank own,
              const Boxes& boxes, std::size_t rounds, std::size_t staging_slots = 0);

  std::vector<std::uint32_t> temporaries;  // by buffer, of the first round; of others 0
  std::uint32_t local_messages = 0;        // of the first round, as this:
  std::uint32_t staging = 0;               // of the plan's first lane, if there are any
  std::uint32_t of_round = 0;              // how many slots of these a round has
  std::uint32_t first_box = 0;
  std::vector<int> peers;  // ascending
  unsigned phases = 1;
  Turns turns;
  unsigned window = 1;                  // rounds under way at a time
  std::vector<engine::NearBoxes> near;  // by rank; none: empty

  std::uint32_t box(const Posting& posting, std::size_t round) const;
  // From the first round's temporaries and local messages to this one's.
  std::uint32_t turn(std::size_t round) const {
    return static_cast<std::uint32_t>(round % window) * of_round;
  }
};

// The plan, its messages, the round and the slot numbers outlive it. Operands passed to it are the plan's own
// (elements of Plan::operands).
class Layout {
 public:
  Layout(const plan::Plan& plan, const Messages& messages, const Round& round, const SlotNumbers& slots,
         OwnRank own, std::size_t number = 0);

  // The part of a pack that the round has; null: none.
  const Part* part(std::int32_t pack) const { return parts_[static_cast<std::size_t>(pack)]; }
  const plan::PackTable* table(std::int32_t pack) const {
    return part(pack) == nullptr ? nullptr : &part(pack)->table;
  }

  // Where a run of chunks lies in (each row of) a part.
  plan::Extent extent(std::int32_t pack, plan::Chunks chunks) const;

  // The memory behind an operand, and where in it element `element` of the part lies; `member` is the tensor
  // of the part that contains it and begins at `member_begin`.
  PointerSource locate(const plan::Operand& operand, const plan::PackMember& member, std::size_t member_begin,
                       std::size_t element) const;

  // Bytes from one row to the next in the memory behind an operand.
  std::size_t row_bytes(const plan::Operand& operand) const;

  std::size_t bytes_of(const plan::Buffer& buffer, plan::Chunks chunks) const;
  std::size_t bytes_of_temporary(const plan::Buffer& buffer) const;

  std::size_t number() const noexcept { return number_; }  // of the round
  const Mail& mail() const noexcept { return mail_; }
  // Of each message of the plan; -1: the round does not have it.
  std::vector<std::int64_t> bytes_of_messages() const;
  std::int32_t message_of(const plan::Operand& operand) const;

 private:
  plan::Extent memory_of(const plan::Operand& operand, std::size_t member_begin) const;

  const plan::Plan& plan_;
  const Messages& messages_;
  const SlotNumbers& slots_;
  std::size_t number_;                 // of the round
  std::vector<const Part*> parts_;     // by pack
  std::vector<std::size_t> elements_;  // by pack
  Mail mail_;
};

}  // namespace onesum::exec
