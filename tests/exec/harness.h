// Runs a plan on memory of its own and compares every result with the numeric simulation, bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "engine/device.h"
#include "exec/executor.h"
#include "exec/program.h"
#include "plan/pack_table.h"
#include "plan/plan.h"
#include "plan/simulate.h"

namespace onesum::exec {

// The tensors of a pack: their elements; or, of a concatenation, what each replica brings to each of `outer`
// rows.
struct PackSize {
  std::vector<std::size_t> members;
  std::vector<std::size_t> counts;
  std::size_t outer = 1;
};

// Bytes of a tensor at an address that is a multiple of nothing. They end where their storage ends, so that
// a sanitizer sees what goes beyond.
class TensorMemory {
 public:
  void resize(std::size_t bytes, std::size_t misalignment) {
    begin_ = misalignment;
    storage_.resize(begin_ + bytes);
  }
  std::byte* data() { return storage_.data() + begin_; }
  std::span<std::byte> span() { return std::span(storage_).subspan(begin_); }
  plan::Bytes bytes() const {
    return {storage_.begin() + static_cast<std::ptrdiff_t>(begin_), storage_.end()};
  }

 private:
  plan::Bytes storage_;
  std::size_t begin_ = 0;
};

class Harness {
 public:
  // The plan must be well formed. Fills the replicas.
  Harness(plan::Plan plan, std::vector<PackSize> sizes, engine::ThreadedEngine& engine,
          std::uint64_t seed = 1, const engine::Limits& limits = {});

  // Also proves the plan.
  void run_and_expect_as_simulated();

  void run(Executor::Deadline deadline = Executor::Deadline::max(), FunctionCaller* caller = nullptr);
  void fill(std::uint64_t seed);
  void expect_as_simulated(const plan::SimulateOptions& options = {}) const;

  const plan::Plan& plan() const { return plan_; }
  std::span<const plan::PackTable> tables() const { return tables_; }
  std::size_t slots() const { return memory_.size(); }  // of tensors
  std::byte* slot(std::size_t number) { return memory_[number].data(); }
  const Program& program() const { return instance_->program(); }

 private:
  void add_tables(const std::vector<PackSize>& sizes);
  void resize_slot(std::size_t slot, std::size_t bytes);
  std::size_t replica_bytes(std::size_t pack, std::size_t replica, const plan::PackMember& member) const;
  Element replica_element(std::size_t pack, std::size_t replica) const;
  bool is_in_place(std::size_t pack, std::size_t destination, std::size_t& replica) const;
  plan::Bytes input_row(std::size_t pack, std::size_t replica, std::size_t row) const;
  plan::BytesOfPacks simulated(const plan::SimulateOptions& options) const;
  plan::Bytes found(std::size_t pack, std::size_t destination) const;

  plan::Plan plan_;
  std::vector<PackSize> sizes_;
  std::vector<plan::PackTable> tables_;
  std::vector<TensorMemory> memory_;  // by tensor slot
  std::vector<plan::Bytes> inputs_;   // what the replicas held before the run, by tensor slot
  std::unique_ptr<Instance> instance_;
};

}  // namespace onesum::exec
