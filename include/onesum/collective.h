// Collectives as values: what is to be done with which memory. CrossDeviceOps runs, starts, prepares and
// plans them.
//
// Each has a list of tensors. values[i] has this process's replicas of tensor i, results[i] the memory of its
// results; replicas and results count over all workers in rank order, each worker's in component order. A
// worker that brings nothing to a call, or gets nothing of it, passes PerReplica() there. Where parts are
// handed out tensors are seen as rows of elements: the numbers of elements must fit, shapes need not. A
// result may be exactly the memory that it takes the place of (its replica, its part of it, or its part of
// the whole); any other overlap is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <onesum/export.h>
#include <onesum/options.h>
#include <onesum/plan.h>
#include <onesum/values.h>

namespace onesum {

enum class CollectiveKind : std::uint8_t {
  kReduce,         // every result gets the sum (or mean, …) of all replicas
  kBroadcast,      // every result gets the root's replica
  kReduceScatter,  // the sum of all replicas is shared out: every result gets the next part of it
  kAllGather,      // every result gets all replicas, one after the other
  kScatter,        // the root's replica is shared out: every result gets the next part of it
  kAllToAll,       // every replica is shared out: every result gets its part of each, one after the other
};

// "reduce", "reduce_scatter", …
ONESUM_API std::string_view to_string(CollectiveKind kind) noexcept;
// The inverse. Throws invalid_argument naming the text and the valid names.
ONESUM_API CollectiveKind parse_collective_kind(std::string_view text);

struct ONESUM_API Collective {
  CollectiveKind kind = CollectiveKind::kReduce;
  ReduceOp op = ReduceOp::kSum;  // kReduce, kReduceScatter
  int root = 0;                  // kBroadcast, kScatter: the worker whose value counts; it has one replica
  std::vector<PerReplica> values;
  std::vector<PerReplica> results;
  // kAllToAll of one tensor: of each replica of this process, how many elements each result gets. None: equal
  // parts.
  std::vector<std::vector<std::size_t>> splits{};
  // A promise of all workers that everyone's parts are equally large. Without it workers tell each other the
  // sizes in every call of the kinds that have parts (but in prepared ones), for one's may change where the
  // others' stay.
  bool has_equal_parts = false;
  // kReduce, kBroadcast, kAllGather: the only worker that passes memory for results, the same on all workers;
  // -1: whoever passes some, and the same ones whenever a worker makes a call that looks the same to it.
  int receiver = -1;

  static Collective reduce(ReduceOp op, std::vector<PerReplica> values, std::vector<PerReplica> results);
  static Collective broadcast(std::vector<PerReplica> values, std::vector<PerReplica> results, int root = 0);
  // The parts of a sum, and of what is scattered, are as large as the results.
  static Collective reduce_scatter(ReduceOp op, std::vector<PerReplica> values,
                                   std::vector<PerReplica> results);
  static Collective all_gather(std::vector<PerReplica> values, std::vector<PerReplica> results);
  static Collective scatter(std::vector<PerReplica> values, std::vector<PerReplica> results, int root = 0);
  static Collective all_to_all(std::vector<PerReplica> values, std::vector<PerReplica> results,
                               std::vector<std::vector<std::size_t>> splits = {});
};

// The same without the memory: for planning. Every replica of every tensor is of this type and shape; what is
// shared out is shared out as equally as can be, the first parts an element larger than the last ones.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::kReduce;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // kBroadcast, kScatter: which of the replicas
  ReduceSpec tensor;
};

}  // namespace onesum
