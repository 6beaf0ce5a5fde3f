#include "exec/program.h"

#include <algorithm>

namespace onesum::exec {

Instance::Instance(std::shared_ptr<const Program> program, engine::Transport* transport)
    : program_(std::move(program)) {
  const Program& p = *program_;
  bases_.resize(p.slots());
  pointers_.resize(p.pointers.size() * p.phases);
  std::uint32_t most_lanes = 0;
  std::uint32_t most_postings = 0;
  for (const BoundRound& round : p.rounds) {
    most_lanes = std::max(most_lanes, round.num_lanes);
    most_postings = std::max(most_postings, round.num_postings);
  }
  done_.resize(most_lanes);
  lanes_.resize(most_lanes);
  sent_.resize(most_postings);
  if (!p.peers.empty()) find_boxes(*transport);
  try {
    for (std::size_t m = 0; m < p.memory_bytes.size(); ++m) {
      if (p.memory_bytes[m] == 0) continue;
      bases_[p.tensor_slots + m] = static_cast<std::byte*>(p.engine->allocate(p.memory_bytes[m]));
    }
  } catch (...) {
    release_memory();
    throw;
  }
}

Instance::~Instance() { release_memory(); }

void Instance::release_memory() noexcept {
  const Program& p = *program_;
  for (std::size_t m = 0; m < p.memory_bytes.size(); ++m) {
    std::byte* const memory = bases_[p.tensor_slots + m];
    if (p.memory_bytes[m] != 0 && memory != nullptr) p.engine->release(memory, p.memory_bytes[m]);
  }
}

void Instance::find_boxes(engine::Transport& transport) {
  std::size_t slot = program_->first_box();
  for (unsigned phase = 0; phase < program_->phases; ++phase) {
    for (const int peer : program_->peers) {
      bases_[slot++] = transport.outbox(peer, phase);
      // Read only; pointers to sources and destinations are kept in one table.
      bases_[slot++] = const_cast<std::byte*>(transport.inbox(peer, phase));
    }
  }
}

void Instance::resolve() noexcept {
  const Program& p = *program_;
  const std::size_t first_box = p.first_box();
  const std::size_t boxes = p.slots() - first_box;
  std::byte** pointer = pointers_.data();
  for (unsigned phase = 0; phase < p.phases; ++phase) {
    const std::size_t turned = phase * 2 * p.peers.size();
    for (const PointerSource& source : p.pointers) {
      std::size_t slot = source.slot;
      if (slot >= first_box) slot = first_box + (slot - first_box + turned) % boxes;
      *pointer++ = bases_[slot] + source.byte_offset;
    }
  }
}

}  // namespace onesum::exec
