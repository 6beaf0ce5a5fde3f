#include "exec/layout.h"

#include <algorithm>

#include "exec/messages.h"

namespace onesum::exec {

using plan::Buffer;
using plan::Chunks;
using plan::Contract;
using plan::Extent;
using plan::Operand;
using plan::PackMember;
using plan::PackTable;
using plan::Role;

namespace {

bool is_channel_end(const Buffer& buffer) { return buffer.role == Role::kSlot || buffer.role == Role::kView; }

}  // namespace

Layout::Layout(const plan::Plan& plan, std::span<const PackTable> tables, std::size_t tensor_slots)
    : plan_(plan),
      tables_(tables),
      tensor_slots_(tensor_slots),
      messages_(messages_of_operands(plan)),
      memory_slots_(plan.buffers.size()) {
  for (const PackTable& table : tables) pack_elements_.push_back(table.elements());
  number_temporaries();
  number_messages();
}

Extent Layout::extent(std::size_t pack, Chunks chunks) const {
  return plan::extent_of(plan_.packs[pack].split, pack_elements_[pack], tables_[pack].counts, chunks);
}

std::size_t Layout::bytes_of(const Buffer& buffer, Chunks chunks) const {
  const auto pack = static_cast<std::size_t>(buffer.pack);
  return extent(pack, chunks).length * tables_[pack].outer * size_of(buffer.element);
}

// The part of its pack that the memory behind an operand holds, row by row. What a replica brings to a
// concatenation, or a result has of a scattered sum, is its own chunks, a message is what was sent. Tensors
// of a pack lie side by side: the one at hand begins at `member_begin`, and rows are whole.
Extent Layout::memory_of(const Operand& operand, std::size_t member_begin) const {
  const Buffer& buffer = plan_.buffer(operand.buffer);
  const auto pack = static_cast<std::size_t>(buffer.pack);
  if (buffer.role == Role::kTemp) return extent(pack, buffer.window);
  if (is_channel_end(buffer)) {
    return extent(pack, messages_[static_cast<std::size_t>(&operand - plan_.operands.data())]);
  }
  const Contract contract = plan_.packs[pack].contract;
  if ((buffer.role == Role::kInput && contract == Contract::kConcatenate) ||
      (buffer.role == Role::kOutput && contract == Contract::kScatter)) {
    return extent(pack, buffer.window);
  }
  return {member_begin, pack_elements_[pack]};
}

PointerSource Layout::locate(const Operand& operand, const PackMember& member, std::size_t member_begin,
                             std::size_t element) const {
  const Buffer& buffer = plan_.buffer(operand.buffer);
  PointerSource source;
  switch (buffer.role) {
    case Role::kInput:
    case Role::kInOut:
      source.slot = member.first_input + static_cast<std::uint32_t>(buffer.index);
      element += member.offset;
      break;
    case Role::kOutput:
      source.slot = member.first_output + static_cast<std::uint32_t>(buffer.index);
      element += member.offset;
      break;
    default:
      source.slot = memory_slot(operand.buffer);
      break;
  }
  source.byte_offset = (element - memory_of(operand, member_begin).offset) * size_of(buffer.element);
  return source;
}

std::size_t Layout::row_bytes(const Operand& operand) const {
  return memory_of(operand, 0).length * size_of(plan_.buffer(operand.buffer).element);
}

std::uint32_t Layout::add_memory(std::size_t bytes) {
  temp_bytes_.push_back(bytes);
  return static_cast<std::uint32_t>(tensor_slots_ + temp_bytes_.size() - 1);
}

void Layout::number_temporaries() {
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& temp = plan_.buffers[b];
    if (temp.role == Role::kTemp) memory_slots_[b] = add_memory(bytes_of(temp, temp.window));
  }
}

// Every channel has room for one message, the longest that is sent or received on it.
void Layout::number_messages() {
  std::vector<std::size_t> longest(plan_.channels.size(), 0);
  for (const Operand& operand : plan_.operands) {
    const Buffer& buffer = plan_.buffer(operand.buffer);
    if (!is_channel_end(buffer)) continue;
    std::size_t& bytes = longest[static_cast<std::size_t>(buffer.index)];
    bytes = std::max(bytes, bytes_of(buffer, operand.chunks));
  }
  std::vector<std::uint32_t> slots;
  for (const std::size_t bytes : longest) slots.push_back(add_memory(bytes));
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& end = plan_.buffers[b];
    if (is_channel_end(end)) memory_slots_[b] = slots[static_cast<std::size_t>(end.index)];
  }
}

}  // namespace onesum::exec
