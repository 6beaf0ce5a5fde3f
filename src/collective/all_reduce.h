// All-reduce plans by name: which algorithm, over devices or over workers, in how many shards.
//
// `a/b` is a hierarchy: a sums inside every worker, b across workers, and a brings the results back. The
// devices of a worker share memory, so that a worker's sum is formed in the same pass that sends it or adds
// what others sent; all canonical algorithms inside a worker are therefore one and the same, and a ring
// inside a worker is a pass for each of its segments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collective/task.h"
#include "plan/plan.h"

namespace onesum::collective {

// The list that every name is checked against and printed from is in all_reduce.cc.
enum class Algorithm : std::uint8_t {
  kNccl,              // "nccl": NCCL's own on GPUs, our one-pass reduce on everything else
  kRing,              // "xring"
  kHalvingDoubling,   // "rechd"
  kShuffleHosts,      // "pscpu": owners are the workers' CPUs
  kShuffleDevices,    // "psgpu": owners are the workers' devices
  kDirect,            // "direct": everyone owns a piece
  kHierarchicalCopy,  // "hierarchical_copy"
  kExchange,          // "exchange": everyone sends all to everyone
  kMachines,          // "machines": direct, but what a machine's workers have is added up before it leaves it
  kDoubling,          // "doubling": everyone sends all it has to one after the other, each twice as far away
  kPool,              // "pool": direct, but everyone sends all it has to everyone
};

std::string_view name_of(Algorithm algorithm) noexcept;
std::optional<Algorithm> algorithm_named(std::string_view name) noexcept;
std::span<const std::string_view> algorithm_names() noexcept;  // of all, in the order of the enumeration

struct Scheme {
  std::optional<Algorithm> inside;  // the a of a/b; absent: one level, over all devices
  Algorithm across = Algorithm::kDirect;
  std::uint32_t shards = 1;
  bool fast = false;       // every worker brings one sum, and 16-bit floats travel as such
  std::size_t number = 0;  // of the pack, for algorithms that take turns over devices from pack to pack
  friend bool operator==(const Scheme&, const Scheme&) = default;
};

// "nccl/xring#2". The name of a scheme must be that of an algorithm or of two with a slash between.
std::string to_string(const Scheme& scheme);
std::optional<Scheme> scheme_named(std::string_view name, std::uint32_t shards) noexcept;

// The scheme for the numberth pack of a call: only what makes a difference of the number is kept, so that
// equal plans have equal schemes.
Scheme with_number(Scheme scheme, const Topology& topology, const Task& task, std::size_t number);

// The plan, or one rank's part of it, for a task whose results are on the devices of its replicas.
plan::Plan all_reduce(const Topology& topology, const Task& task, const Scheme& scheme,
                      std::optional<std::int32_t> only_rank = {});

// The two halves of which `xring`, `rechd` and `direct` are made, as plans of their own over the devices of a
// task for an all-reduce: the sum, every piece of it at its owner, and the pieces back to everyone. For
// schemes of one level and one shard; `xring` owns piece k at position k of its ring, `direct` at replica k,
// `rechd` as halving leaves it, none at those beyond the largest power of two. Throws invalid_argument for
// other schemes.
plan::Plan reduce_scatter(const Topology& topology, const Task& task, const Scheme& scheme);
plan::Plan all_gather(const Topology& topology, const Task& task, const Scheme& scheme);

// Whether a vendor's library runs it, or the sums inside its workers (collective/native.h).
bool is_native(const Topology& topology, const Task& task, const Scheme& scheme);

// Whether its sums are canonical.
bool is_canonical(const Topology& topology, const Task& task, const Scheme& scheme);

}  // namespace onesum::collective
