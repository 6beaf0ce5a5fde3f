// One scheme applied to one task: who takes part, how the pack is cut, and the lanes of all parties.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collective/all_reduce.h"
#include "collective/draft.h"
#include "collective/halving_doubling.h"
#include "collective/machines.h"
#include "collective/script.h"
#include "collective/task.h"
#include "collective/terms.h"

namespace onesum::collective {

class AllReduceWriter {
 public:
  // The topology and the task outlive it.
  AllReduceWriter(const Topology& topology, const Task& task, const Scheme& scheme);
  AllReduceWriter(const AllReduceWriter&) = delete;
  AllReduceWriter& operator=(const AllReduceWriter&) = delete;

  Cut cut() const;
  std::string order() const;
  std::size_t num_parties() const noexcept { return level_.parties.size(); }

  // After so many packs the devices have all had their turn.
  std::size_t turns() const;

  // Writes all lanes of the draft's ranks.
  void write(Draft& draft);

  // Whether the lanes of parties can be written one by one, a stretch at a time; and such a lane, of the
  // party at `position`: it belongs to `rank_at`.
  bool has_scripts() const noexcept;
  std::int32_t rank_at(std::size_t position, std::uint32_t shard) const;
  Script script(Draft& draft, std::size_t position, std::uint32_t shard);

  // Whether it is one ring in which every party is a rank of its own.
  bool is_ring_of_ranks() const;

  // Of xring, rechd and direct over devices: what each party owns between the two halves.
  std::vector<plan::Chunks> owned() const;

  // What a vendor's library runs (collective/native.h): nothing, the sums inside workers, or all of it.
  enum class Native : std::uint8_t { kNone, kInside, kAll };
  Native native() const noexcept { return native_; }

 private:
  bool rings_across() const { return scheme_.across == Algorithm::kRing; }
  bool is_sharded_by_owners() const;
  Level make_level() const;
  std::vector<std::int32_t> devices_by_turns() const;
  void choose_owners();
  bool is_canonical_ring() const;
  bool passes_sums_on() const;
  bool rounds_on_the_way() const;
  std::string native_order() const;

  const Topology& topology_;
  const Task& task_;
  Native native_;
  Scheme scheme_;
  Level level_;
  HalvingDoubling halving_doubling_;
  std::vector<std::int32_t> owners_;             // of the units of a shuffle
  std::vector<std::vector<std::size_t>> rings_;  // of each shard
  PartiesByMachine machines_;
};

}  // namespace onesum::collective
