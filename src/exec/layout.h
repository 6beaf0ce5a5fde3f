// Where the operands of a plan's steps lie: tensors, temporaries and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/program.h"
#include "plan/pack_table.h"
#include "plan/plan.h"

namespace onesum::exec {

// The plan and its tables outlive it. Operands passed to it are the plan's own (elements of Plan::operands).
class Layout {
 public:
  Layout(const plan::Plan& plan, std::span<const plan::PackTable> tables, std::size_t tensor_slots);

  // Where a run of chunks lies in (each row of) a pack.
  plan::Extent extent(std::size_t pack, plan::Chunks chunks) const;

  // The memory behind an operand, and where in it element `element` of the pack lies; `member` is the tensor
  // of the pack that contains it and begins at `member_begin`.
  PointerSource locate(const plan::Operand& operand, const plan::PackMember& member, std::size_t member_begin,
                       std::size_t element) const;

  // Bytes from one row to the next in the memory behind an operand.
  std::size_t row_bytes(const plan::Operand& operand) const;

  // The slot of a temporary, or of the message at either end of a channel.
  std::uint32_t memory_slot(std::int32_t buffer) const {
    return memory_slots_[static_cast<std::size_t>(buffer)];
  }

  // As Program::temp_bytes.
  const std::vector<std::size_t>& temp_bytes() const noexcept { return temp_bytes_; }

 private:
  std::size_t bytes_of(const plan::Buffer& buffer, plan::Chunks chunks) const;
  plan::Extent memory_of(const plan::Operand& operand, std::size_t member_begin) const;
  std::uint32_t add_memory(std::size_t bytes);
  void number_temporaries();
  void number_messages();

  const plan::Plan& plan_;
  std::span<const plan::PackTable> tables_;
  std::size_t tensor_slots_;
  std::vector<plan::Chunks> messages_;       // by operand: the message that it is (part of)
  std::vector<std::size_t> pack_elements_;   // by pack
  std::vector<std::uint32_t> memory_slots_;  // by buffer
  std::vector<std::size_t> temp_bytes_;
};

}  // namespace onesum::exec
