// Partial sums as algorithms carry them around: which replicas each stands for, and how it is formed.
//
// A sum keeps the canonical order (plan/plan.h) if only partial sums that are neighbours in the tree are ever
// added. A worker whose replicas are no such subtree therefore holds several terms, and sends each by itself.
//
// Terms are lazy: a term of several leaves has not been added up yet. It is when it is sent or becomes a
// result, in the one pass that moves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/task.h"
#include "plan/plan.h"

namespace onesum::collective {

struct Leaf {
  std::int32_t number = 0;  // a replica, or once bound (collective/draft.h) a buffer
  std::uint8_t merges = 0;  // as in plan::Operand
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

struct Term {
  plan::Block block;         // of the tree's replicas
  std::vector<Leaf> leaves;  // in postfix; none: known by name only, it is formed elsewhere
  bool raw = true;           // a replica itself: it travels in the replica's own type
  friend bool operator==(const Term&, const Term&) = default;
};

// The sum of two terms: what the first stands for, then what the second stands for.
Term sum_of(Term left, const Term& right);

// The same terms in order of their replicas, neighbours added up where the canonical tree over `tree`
// replicas adds them.
std::vector<Term> combined(std::vector<Term> terms, std::size_t tree);

// What is known of terms without what they are made of.
std::vector<Term> outline(std::span<const Term> terms);

// Who takes part in an algorithm: a device that stands for one replica, or for all of a worker's.
struct Party {
  std::int32_t device = 0;
  std::vector<Term> terms;                 // leaves are replicas
  std::vector<std::int32_t> destinations;  // results it writes, by their number in the task
  // Where a native collective sums inside the worker (collective/native.h): all its replicas and results. Of
  // these `destinations` has the one where the sum is.
  std::vector<std::int32_t> native_replicas = {};
  std::vector<std::int32_t> native_results = {};
  friend bool operator==(const Party&, const Party&) = default;
};

// A level of a hierarchy: parties, and the tree over which they add.
struct Level {
  std::size_t tree = 0;  // leaves of the canonical tree: replicas, or parties if each brings one sum
  std::vector<Party> parties;
  bool canonical = true;     // the parties' terms are subtrees of the replicas' tree
  bool narrow = false;       // partial sums of 16-bit floats travel in 16 bits
  std::uint32_t grain = 1;   // chunks to a unit of the split above; > 1: see ring_inside
  bool ring_inside = false;  // a party sums its replicas in ring order first, a chunk of the unit at a time
};

// A party per replica.
Level level_of_devices(const Task& task);

// A party per worker, in the order of ranks; its device is that of its first replica, or its host. With
// `one_sum` every worker brings one sum of its replicas whatever the tree says; otherwise as many terms as
// the canonical order needs.
enum class Leader : std::uint8_t { kFirstDevice, kHost };
Level level_of_workers(const Task& task, const Topology& topology, Leader leader, bool one_sum);

}  // namespace onesum::collective
