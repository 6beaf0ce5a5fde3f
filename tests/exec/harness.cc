#include "harness.h"

#include <algorithm>
#include <numeric>

#include "exec/bind.h"
#include "plan/verify.h"
#include "support/bits.h"

namespace onesum::exec {

using plan::Bytes;
using plan::Contract;
using plan::PackMember;
using plan::PackTable;
using plan::Role;

Harness::Harness(plan::Plan plan, std::vector<PackSize> sizes, engine::ThreadedEngine& engine,
                 std::uint64_t seed, const engine::Limits& limits)
    : plan_(std::move(plan)), sizes_(std::move(sizes)) {
  add_tables(sizes_);
  instance_ = std::make_unique<Instance>(exec::bind(plan_, tables_, memory_.size(), {engine, {}, limits}));
  fill(seed);
}

// Slots are numbered from the last pack to the first, and with gaps, so that nothing depends on their order.
void Harness::add_tables(const std::vector<PackSize>& sizes) {
  tables_.resize(sizes.size());
  for (std::size_t p = sizes.size(); p-- > 0;) {
    const PackSize& size = sizes[p];
    const plan::Pack& pack = plan_.packs[p];
    PackTable& table = tables_[p];
    table.outer = size.outer;
    table.counts = size.counts;
    std::vector<std::size_t> members = size.members;
    if (pack.contract == Contract::kConcatenate) {
      members = {std::accumulate(size.counts.begin(), size.counts.end(), std::size_t{0})};
    }
    for (const std::size_t elements : members) {
      PackMember member{elements, 0, 0};
      member.first_output = static_cast<std::uint32_t>(memory_.size() + 1);
      memory_.resize(memory_.size() + 1 + pack.destinations.size());
      for (std::size_t d = 0; d < pack.destinations.size(); ++d) {
        resize_slot(member.first_output + d, elements * size.outer * size_of(pack.output));
      }
      member.first_input = static_cast<std::uint32_t>(memory_.size());
      memory_.resize(memory_.size() + pack.replicas.size());
      for (std::size_t r = 0; r < pack.replicas.size(); ++r) {
        resize_slot(member.first_input + r, replica_bytes(p, r, member));
      }
      table.members.push_back(member);
    }
  }
}

void Harness::resize_slot(std::size_t slot, std::size_t bytes) { memory_[slot].resize(bytes, slot % 5); }

Element Harness::replica_element(std::size_t pack, std::size_t replica) const {
  for (const plan::Buffer& buffer : plan_.buffers) {
    const bool is_replica = buffer.role == Role::kInput || buffer.role == Role::kInOut;
    if (is_replica && static_cast<std::size_t>(buffer.pack) == pack &&
        static_cast<std::size_t>(buffer.index) == replica) {
      return buffer.element;
    }
  }
  return plan_.packs[pack].accumulator;
}

std::size_t Harness::replica_bytes(std::size_t pack, std::size_t replica, const PackMember& member) const {
  const PackSize& size = sizes_[pack];
  const bool concatenates = plan_.packs[pack].contract == Contract::kConcatenate;
  const std::size_t elements = concatenates ? size.counts[replica] * size.outer : member.elements;
  return elements * size_of(replica_element(pack, replica));
}

bool Harness::is_in_place(std::size_t pack, std::size_t destination, std::size_t& replica) const {
  for (const plan::Buffer& buffer : plan_.buffers) {
    if (buffer.role != Role::kInOut || static_cast<std::size_t>(buffer.pack) != pack) continue;
    if (buffer.device != plan_.packs[pack].destinations[destination]) continue;
    replica = static_cast<std::size_t>(buffer.index);
    return true;
  }
  return false;
}

void Harness::fill(std::uint64_t seed) {
  for (std::size_t p = 0; p < tables_.size(); ++p) {
    for (const PackMember& member : tables_[p].members) {
      for (std::size_t d = 0; d < plan_.packs[p].destinations.size(); ++d) {
        std::ranges::fill(memory_[member.first_output + d].span(), std::byte{0x5a});
      }
      for (std::size_t r = 0; r < plan_.packs[p].replicas.size(); ++r) {
        testing::fill(memory_[member.first_input + r].span(), static_cast<DType>(replica_element(p, r)),
                      testing::Fill::kPlain, seed * 1000 + member.first_input + r);
      }
    }
  }
  inputs_.clear();
  for (const TensorMemory& tensor : memory_) inputs_.push_back(tensor.bytes());
}

void Harness::run(Executor::Deadline deadline, FunctionCaller* caller) {
  for (std::size_t s = 0; s < memory_.size(); ++s) instance_->bases()[s] = memory_[s].data();
  instance_->bases_changed();
  Executor::run(*instance_, deadline, caller);
}

Bytes Harness::found(std::size_t pack, std::size_t destination) const {
  Bytes bytes;
  std::size_t replica = 0;
  const bool in_place = is_in_place(pack, destination, replica);
  for (const PackMember& member : tables_[pack].members) {
    const Bytes part =
        memory_[in_place ? member.first_input + replica : member.first_output + destination].bytes();
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

// Row `row` of what replica `replica` of a pack held before the run, all its tensors one after the other.
Bytes Harness::input_row(std::size_t pack, std::size_t replica, std::size_t row) const {
  Bytes bytes;
  for (const PackMember& member : tables_[pack].members) {
    const Bytes& whole = inputs_[member.first_input + replica];
    const std::size_t each = whole.size() / tables_[pack].outer;
    const auto begin =
        whole.begin() + static_cast<std::ptrdiff_t>(std::min(row, tables_[pack].outer - 1) * each);
    bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return bytes;
}

// A concatenation by rows is as many concatenations as there are rows.
plan::BytesOfPacks Harness::simulated(const plan::SimulateOptions& options) const {
  plan::Sizes sizes;
  plan::BytesOfPacks all(plan_.packs.size());
  std::size_t rows = 1;
  for (std::size_t p = 0; p < plan_.packs.size(); ++p) {
    sizes.pack_lengths.push_back(tables_[p].elements());
    sizes.counts.push_back(tables_[p].counts);
    all[p].resize(plan_.packs[p].destinations.size());
    rows = std::max(rows, tables_[p].outer);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    plan::BytesOfPacks inputs(plan_.packs.size());
    for (std::size_t p = 0; p < plan_.packs.size(); ++p) {
      for (std::size_t r = 0; r < plan_.packs[p].replicas.size(); ++r)
        inputs[p].push_back(input_row(p, r, row));
    }
    const plan::BytesOfPacks results = plan::simulate(plan_, sizes, inputs, options);
    for (std::size_t p = 0; p < plan_.packs.size(); ++p) {
      for (std::size_t d = 0; row < tables_[p].outer && d < all[p].size(); ++d) {
        all[p][d].insert(all[p][d].end(), results[p][d].begin(), results[p][d].end());
      }
    }
  }
  return all;
}

void Harness::expect_as_simulated(const plan::SimulateOptions& options) const {
  const plan::BytesOfPacks expected = simulated(options);
  for (std::size_t p = 0; p < plan_.packs.size(); ++p) {
    for (std::size_t d = 0; d < plan_.packs[p].destinations.size(); ++d) {
      const auto dtype = static_cast<DType>(plan_.packs[p].output);
      EXPECT_TRUE(testing::same_bits(dtype, found(p, d), expected[p][d]))
          << "pack " << p << " destination " << d;
    }
  }
  for (const plan::Buffer& buffer : plan_.buffers) {
    if (buffer.role != Role::kInput) continue;
    for (const PackMember& member : tables_[static_cast<std::size_t>(buffer.pack)].members) {
      const std::size_t slot = member.first_input + static_cast<std::size_t>(buffer.index);
      EXPECT_EQ(memory_[slot].bytes(), inputs_[slot])
          << "replica " << buffer.index << " of pack " << buffer.pack << " was changed";
    }
  }
}

void Harness::run_and_expect_as_simulated() {
  ASSERT_NO_THROW(plan::verify(plan_));
  run();
  expect_as_simulated();
}

}  // namespace onesum::exec
