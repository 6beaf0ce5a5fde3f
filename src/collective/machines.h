// Machines: workers that share one add up what they have before anything leaves it, and what comes in is
// handed round among them.
//
//   machine       0               1
//   party         0       1       2       3       cut into rows, one for each party of the largest machine,
//   row 0         a ◄──── b       c ◄──── d       and each row into a unit for each machine
//   row 1         a ────► b       c ────► d       1. inside a machine, terms of a row travel to its owner
//   unit (0, 0)   a+b ◄────────── c+d             2. the owners of a row exchange what their machines have of
//   unit (0, 1)   a+b ──────────► c+d                each other's units
//   s00 to 1, 2   s01 to 0, 3                     3. one pass adds a unit; its result goes to all of the
//                                                    machine and to the row's owner on every other one,
//   s01 to 1      s00 to 3                        4. who hands it on
//
// Row j belongs to party j of a machine, in turn where it has fewer. Between machines only what must crosses:
// a machine whose terms are one sum sends and receives B (M-1) / M of terms and as much of results, however
// many parties it has; one by one (`direct`) they would send as many times that.
//
// Steps: 4 messages deep, of which 2 are inside machines. Order: canonical if the parties' terms are. On one
// machine, and where every party has its own, it is `direct`.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/draft.h"
#include "collective/task.h"
#include "collective/terms.h"

namespace onesum::collective {

// The parties of each machine by their number in the level; machines in the order of their first party.
using PartiesByMachine = std::vector<std::vector<std::size_t>>;
PartiesByMachine parties_by_machine(const Level& level, const Topology& topology);

// The most parties of a machine: the rows. The pack has a unit for each row and machine, row by row.
std::uint32_t count_rows(const PartiesByMachine& machines);

// Writes the shard's lanes, one for each rank.
void write_machines(Draft& draft, const Level& level, const PartiesByMachine& machines, std::uint32_t shard);

}  // namespace onesum::collective
