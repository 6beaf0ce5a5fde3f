#include "exec/layout.h"

#include <algorithm>
#include <set>

namespace onesum::exec {

using plan::Buffer;
using plan::Chunks;
using plan::Contract;
using plan::Extent;
using plan::Operand;
using plan::PackMember;
using plan::Role;

namespace {

bool is_channel_end(const Buffer& buffer) { return buffer.role == Role::kSlot || buffer.role == Role::kView; }

std::vector<int> peers_of(const plan::Plan& plan, const Messages& messages, OwnRank own) {
  std::set<int> peers;
  if (!own) return {};
  for (const Message& message : messages.all) {
    const plan::Channel& channel = plan.channel(message.channel);
    const std::int32_t from = plan.rank_of(channel.from);
    const std::int32_t to = plan.rank_of(channel.to);
    if (from == *own && to != *own) peers.insert(to);
    if (to == *own && from != *own) peers.insert(from);
  }
  const std::vector<int> circle = ranks_in_native_groups(plan);
  if (std::ranges::find(circle, *own) != circle.end()) peers.insert(circle.begin(), circle.end());
  peers.erase(*own);
  return {peers.begin(), peers.end()};
}

// One copy of the outboxes stays to spare: with it, who waits for a copy has mostly heard that it is free
// when it needs it. What is brought to a call of a user's function, or comes from one, stays from round to
// round, so that rounds cannot have temporaries of their own.
// All processes come to native collectives in one order.
unsigned window_of(const plan::Plan& plan, const Messages& messages, unsigned phases, std::size_t rounds) {
  const bool has_call = std::ranges::find(messages.stages.has_call, true) != messages.stages.has_call.end();
  const unsigned most = has_call || !plan.groups.empty() || phases < 2 ? 1 : phases - 1;
  return static_cast<unsigned>(std::min<std::size_t>(most, rounds));
}

// Each turn has a table of all addresses: not too many.
constexpr std::size_t kMostTurns = 32;

// What a rank writes where the other has just read has to be fetched out of the other's cache first; memory
// that was not used for a while has left it. All ranks that are near have the same room.
Turns turns_of(const Boxes& boxes) {
  std::size_t room = 0;
  std::size_t tiny = 0;
  for (const engine::NearBoxes& near : boxes.near) {
    room = std::max(room, near.room);
    tiny = std::max(tiny, near.tiny_bytes);
  }
  // Where messages are announced, but for a few that are hardly longer and gain nothing from turns.
  const bool is_elsewhere = tiny > 0 && boxes.fullest <= room_of(tiny);
  if (boxes.fullest == 0 || is_elsewhere || room < 2 * boxes.fullest) return {};
  const std::size_t count = std::min(kMostTurns, room / boxes.fullest);
  return {static_cast<unsigned>(count), boxes.fullest};
}

}  // namespace

SlotNumbers::SlotNumbers(const plan::Plan& plan, const Messages& messages, std::size_t tensor_slots,
                         OwnRank own, const Boxes& boxes, std::size_t rounds, std::size_t staging_slots)
    : temporaries(plan.buffers.size()),
      peers(peers_of(plan, messages, own)),
      near(boxes.near.begin(), boxes.near.end()) {
  if (!peers.empty()) {
    phases = boxes.phases;
    turns = turns_of(boxes);
    window = window_of(plan, messages, phases, rounds);
  }
  auto next = static_cast<std::uint32_t>(tensor_slots);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].role == Role::kTemp) temporaries[b] = next++;
  }
  local_messages = next++;
  staging = next;
  next += static_cast<std::uint32_t>(staging_slots);
  of_round = next - static_cast<std::uint32_t>(tensor_slots);
  first_box = static_cast<std::uint32_t>(tensor_slots) + window * of_round;
}

std::uint32_t SlotNumbers::box(const Posting& posting, std::size_t round) const {
  const auto peer = std::ranges::lower_bound(peers, posting.place.peer) - peers.begin();
  const std::size_t pair = round % (phases * turns.count) * peers.size() + static_cast<std::size_t>(peer);
  return first_box +
         static_cast<std::uint32_t>(kBoxesOfPair * pair + 2 * static_cast<std::size_t>(posting.place.box) +
                                    (posting.way == Way::kIncoming ? 1 : 0));
}

Layout::Layout(const plan::Plan& plan, const Messages& messages, const Round& round, const SlotNumbers& slots,
               OwnRank own, std::size_t number)
    : plan_(plan),
      messages_(messages),
      slots_(slots),
      number_(number),
      parts_(plan.packs.size()),
      elements_(plan.packs.size()) {
  for (const Part& part : round) {
    parts_[static_cast<std::size_t>(part.pack)] = &part;
    elements_[static_cast<std::size_t>(part.pack)] = part.table.elements();
  }
  mail_ = deal_mail(plan, messages, bytes_of_messages(), own, slots.near);
}

std::vector<std::int64_t> Layout::bytes_of_messages() const {
  std::vector<std::int64_t> bytes(messages_.all.size(), -1);
  for (std::size_t m = 0; m < bytes.size(); ++m) {
    const Message& message = messages_.all[m];
    const Buffer& slot = plan_.buffer(message.buffer);
    const Part* const its = part(slot.pack);
    if (its == nullptr || !has_side(*its, messages_.stages.is_message_after[m])) continue;
    bytes[m] = static_cast<std::int64_t>(bytes_of(slot, message.chunks));
  }
  return bytes;
}

Extent Layout::extent(std::int32_t pack, Chunks chunks) const {
  return extent_of(*parts_[static_cast<std::size_t>(pack)], plan_.pack(pack).split, chunks);
}

std::size_t Layout::bytes_of(const Buffer& buffer, Chunks chunks) const {
  return extent(buffer.pack, chunks).length * table(buffer.pack)->outer * size_of(buffer.element);
}

std::size_t Layout::bytes_of_temporary(const Buffer& buffer) const {
  return part(buffer.pack)->first * size_of(buffer.element) + bytes_of(buffer, buffer.window);
}

std::int32_t Layout::message_of(const Operand& operand) const {
  return messages_.of_operand[static_cast<std::size_t>(&operand - plan_.operands.data())];
}

// The part of its pack that the memory behind an operand holds, row by row. What a replica brings to a
// concatenation, or a result has of a scattered sum, is its own chunks, a message is what was sent. Tensors
// of a pack lie side by side: the one at hand begins at `member_begin`, and rows are whole.
Extent Layout::memory_of(const Operand& operand, std::size_t member_begin) const {
  const Buffer& buffer = plan_.buffer(operand.buffer);
  if (buffer.role == Role::kTemp) return extent(buffer.pack, buffer.window);
  if (is_channel_end(buffer)) {
    return extent(buffer.pack, messages_.all[static_cast<std::size_t>(message_of(operand))].chunks);
  }
  const Contract contract = plan_.pack(buffer.pack).contract;
  if ((buffer.role == Role::kInput && contract == Contract::kConcatenate) ||
      (buffer.role == Role::kOutput && contract == Contract::kScatter)) {
    return extent(buffer.pack, buffer.window);
  }
  return {member_begin, elements_[static_cast<std::size_t>(buffer.pack)]};
}

PointerSource Layout::locate(const Operand& operand, const PackMember& member, std::size_t member_begin,
                             std::size_t element) const {
  const Buffer& buffer = plan_.buffer(operand.buffer);
  const Extent memory = memory_of(operand, member_begin);
  const std::size_t rows_before = table(buffer.pack)->first_row * memory.length;
  PointerSource source;
  std::size_t begin = 0;  // bytes
  switch (buffer.role) {
    case Role::kInput:
    case Role::kInOut:
      source.slot = member.first_input + static_cast<std::uint32_t>(buffer.index);
      element += member.input_offset + rows_before;
      break;
    case Role::kOutput:
      source.slot = member.first_output + static_cast<std::uint32_t>(buffer.index);
      element += member.output_offset + rows_before;
      break;
    case Role::kTemp:
      source.slot = slots_.temporaries[static_cast<std::size_t>(operand.buffer)] + slots_.turn(number_);
      element += part(buffer.pack)->first;
      break;
    case Role::kSlot:
    case Role::kView: {
      const Posting& posting = mail_.postings[static_cast<std::size_t>(message_of(operand))];
      source.slot = posting.way == Way::kLocal ? slots_.local_messages + slots_.turn(number_)
                                               : slots_.box(posting, number_);
      begin = posting.place.offset;
      break;
    }
  }
  source.byte_offset = begin + (element - memory.offset) * size_of(buffer.element);
  return source;
}

std::size_t Layout::row_bytes(const Operand& operand) const {
  return memory_of(operand, 0).length * size_of(plan_.buffer(operand.buffer).element);
}

}  // namespace onesum::exec
