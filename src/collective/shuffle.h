// Shuffle: the pack is cut into as many units as there are owners; an owner receives its unit of every term,
// adds them up in canonical order and sends the result to everyone.
//
//   unit      0          1                       owners: two devices, which may be any
//   party 0   a0 ────┐   a1 ──────────┐
//   party 1   b0 ──┐ │   b1 ────────┐ │          1. terms travel to the owners
//   owner 0        a0+b0             │ │
//   owner 1                          a1+b1       2. one pass adds them, writes the results of the owner's
//             s0 ◄──┤        s1 ◄────┤              worker and one message for every other worker
//             s0 ◄──┘        s1 ◄────┘           3. there they are copied to all its results
//
// Terms of the owner's own worker are read where they are, and results of one worker come in one message:
// only what must cross between workers does. With all parties in one worker it is one step for each owner.
//
// Steps: 2 messages deep. Bytes: a party sends its terms once, less what its own worker owns; an owner of one
// of g units sends B/g to every other worker. Order: canonical if the parties' terms are.
//
// `pscpu` owns by the workers' CPUs, `psgpu` by their devices, `direct` by all parties, one by one; reduction
// to one device is a shuffle with one owner.
//
// `pool` is `direct` with terms that travel whole, to all other workers at once:
//
//   party 0   a0 a1 a2 a3 ──► a pool from which everyone takes its unit, and adds it up
//
// On one machine a message to all is written once and announced once, whoever reads how much of it: of n
// workers each sends 2 messages in place of n. By a network it would carry n times the bytes.
#pragma once

#include <cstdint>
#include <span>

#include "collective/draft.h"
#include "collective/terms.h"

namespace onesum::collective {

// How terms travel: to each owner its unit, or everything to everybody.
enum class Sending : std::uint8_t { kUnits, kWhole };

// Writes the shard's lanes, one for each rank. `owners`: the device of each unit of the draft's cut.
void write_shuffle(Draft& draft, const Level& level, std::span<const std::int32_t> owners, Sending sending,
                   std::uint32_t shard);

// The owners of `units` units among `devices`, in turn: groups of equal size that differ from one pack to
// the next, as evenly spread as can be.
std::vector<std::int32_t> owner_group(std::span<const std::int32_t> devices, std::size_t units,
                                      std::size_t pack_number);

}  // namespace onesum::collective
