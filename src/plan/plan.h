// A plan: the schedule of one call as a value. Who does what, in which order, without addresses and without
// sizes.
//
// Algorithms (src/collective) make plans, plan/* prints, parses, verifies, simulates, costs and draws them,
// and exec binds them to memory. A plan has no identity: it is copied, compared and thrown away like a
// number.
//
// Vocabulary. A *pack* is a virtual vector that is reduced as one; which tensors' pieces it is made of is
// known to the binder only. A pack is cut into *chunks* by its split; chunk bounds follow from the number of
// elements at bind, so a plan is the same for every size. A *buffer* is a device's instance of (some chunks
// of) a pack. Steps read and write runs of chunks of buffers. A *channel* is an ordered stream of messages
// between two devices with one or more slots: writing to a channel's slot buffer sends, kRecv exposes the
// oldest message as the channel's view buffer, kRelease returns its slot. A *group* is a set of devices over
// which a vendor's library runs whole collectives by itself. *Lanes* run side by side; inside a lane steps
// run in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/combine.h"
#include "base/element.h"

namespace onesum::plan {

// A run of chunks [first, first + count).
struct Chunks {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  friend bool operator==(const Chunks&, const Chunks&) = default;
};

// How a vector of elements is cut. kRagged: equal parts, the last one takes the remainder. kPadded: parts of
// ceil(length / parts), the last ones shorter or empty. kCounts: part i has as many elements as replica i
// brings, known only at run time.
enum class SplitRule : std::uint8_t { kRagged, kPadded, kCounts };
struct SplitLevel {
  SplitRule rule = SplitRule::kRagged;
  std::uint32_t parts = 1;
  friend bool operator==(const SplitLevel&, const SplitLevel&) = default;
};
// Levels nest: each part of a level is cut by the next. No level: one chunk. kCounts stands alone.
using Split = std::vector<SplitLevel>;
inline bool is_by_counts(const Split& split) noexcept {
  return !split.empty() && split.front().rule == SplitRule::kCounts;
}

struct Extent {
  std::size_t offset = 0;  // elements
  std::size_t length = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};
std::uint32_t num_chunks(const Split& split) noexcept;
// Where a run of chunks lies in a vector of `length` elements; `counts` (one per part) only for kCounts,
// whose length is their sum.
Extent extent_of(const Split& split, std::size_t length, std::span<const std::size_t> counts, Chunks chunks);

// What the destinations of a pack must hold in the end, chunk by chunk.
enum class Contract : std::uint8_t {
  // All chunks at every destination: all replicas combined (the sum over them, unless `combine` is another
  // operation), divided by `divisor` (one replica and divisor 1: a broadcast).
  kReduce,
  // All chunks at every destination, each from the one replica that brings it, divided by `divisor`. Split by
  // kCounts, replica r brings chunk r; else it brings the window of its buffer, and the windows of all
  // replicas share out the chunks.
  kConcatenate,
  // The sum as in kReduce, every chunk at one destination: the windows of the results share out the chunks.
  kScatter,
};

struct Pack {
  Contract contract = Contract::kReduce;
  Element accumulator = Element::kFloat32;  // sums are formed in it
  Element output = Element::kFloat32;
  std::int64_t divisor = 1;  // MEAN: the number of replicas
  Split split;
  std::vector<std::int32_t> replicas;      // device of each replica
  std::vector<std::int32_t> destinations;  // device of each result
  Combine combine = Combine::kSum;         // what is said of sums here holds of all that combine replicas
  friend bool operator==(const Pack&, const Pack&) = default;
};

enum class Role : std::uint8_t {
  kInput,   // a replica; read only
  kOutput,  // a result; holds nothing at first
  kInOut,   // a replica that its result replaces (in place)
  kTemp,    // memory of the library; holds nothing at first
  kSlot,    // the sending end of a channel: every write of a run of chunks to it is one message; write only
  kView,    // the receiving end: the message received last, from kRecv to kRelease; read only
};

struct Buffer {
  Role role = Role::kInput;
  std::int32_t device = 0;
  std::int32_t pack = 0;
  // kInput, kInOut: which replica; kOutput: which destination; kTemp: its number; kSlot, kView: which
  // channel. (kInOut replaces the destination on the same device.)
  std::int32_t index = 0;
  Element element = Element::kFloat32;
  Chunks window;  // the chunks it has room for
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct Channel {
  std::int32_t from = 0;  // devices
  std::int32_t to = 0;
  std::int32_t number = 0;  // tells parallel channels of the same two devices apart
  friend bool operator==(const Channel&, const Channel&) = default;
};

// The devices of a native collective: what a vendor's library calls a communicator.
struct Group {
  std::vector<std::int32_t> devices;  // ascending
  friend bool operator==(const Group&, const Group&) = default;
};

// A run of chunks of a buffer. As a source of kReduce it also carries the order of additions, in postfix: the
// source is pushed on a stack, then the two topmost entries are added `merges` times. (a+b)+(c+d) is
// a:0 b:1 c:0 d:2. The sum of all merges of a step is one less than its sources.
struct Operand {
  std::int32_t buffer = 0;
  Chunks chunks;
  std::uint8_t merges = 0;
  friend bool operator==(const Operand&, const Operand&) = default;
};

enum class Op : std::uint8_t {
  kCopy,    // every destination = the source; same element type
  kReduce,  // every destination = tree(sources) / divisor, formed in `accumulator` by `combine`, each element
            // on its own; one source: a conversion or a scaling. A destination may be exactly one of the
            // sources.
  kRecv,    // the view of `channel` = its oldest message, which has the chunks of the one destination operand
  kRelease,  // the slot of `channel`'s view is free again
  kCall,     // the one destination = the user's function of all sources (whole packs), divided by `divisor`
  kWait,     // until step `step` of lane `lane` (of the same rank) is done
  kCounts,  // from here on the lane's rank knows how many elements each replica brings to `pack`, whose split
            // is kCounts. Done when every rank has come to it, so ranks have them in the same order.
  kNative,  // the rank's part of a collective that a vendor's library runs over `group`: sources are what its
            // devices bring, destinations what they get, all of one type. Done when every rank with a device
            // in the group has come to it, so ranks have them in the same order. Nobody knows in which order
            // the library adds; each result holds every source of all ranks exactly once.
};

// What a native step does. On each device of the group that is the rank's own:
enum class Collective : std::uint8_t {
  kAllReduce,  // a source and a destination, which may be the same
  kReduce,     // a source; on one device of the group also the destination, which may be the same
  kBroadcast,  // on one device of the group the source, on all others a destination
};

// Whether an operation reads and writes buffers, on a device; the others only say when.
constexpr bool is_work(Op op) noexcept {
  return op == Op::kCopy || op == Op::kReduce || op == Op::kCall || op == Op::kNative;
}

struct Step {
  Op op = Op::kCopy;
  Element accumulator = Element::kFloat32;         // kReduce, kCall
  Collective collective = Collective::kAllReduce;  // kNative
  Combine combine = Combine::kSum;                 // kReduce of more than one source: its pack's
  std::int32_t device = 0;    // where it runs; kNative: the first device of its group that is its rank's own
  std::int64_t divisor = 1;   // kReduce, kCall
  std::int32_t channel = -1;  // kRelease, kRecv
  std::int32_t lane = -1;     // kWait
  std::int32_t step = -1;     // kWait
  std::int32_t pack = -1;     // kCounts
  std::int32_t group = -1;    // kNative
  std::uint32_t first_operand = 0;  // in Plan::operands: destinations, then sources
  std::uint16_t num_destinations = 0;
  std::uint16_t num_sources = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

struct Lane {
  std::int32_t rank = 0;
  std::vector<Step> steps;
  friend bool operator==(const Lane&, const Lane&) = default;
};

struct Plan {
  std::string algorithm;                  // "one_device"
  std::string order = "canonical";        // what the plan claims of its additions; verify holds it to it
  std::vector<std::int32_t> device_rank;  // of each device, the rank that owns it
  std::vector<Pack> packs;
  std::vector<Buffer> buffers;
  std::vector<Channel> channels;
  std::vector<Group> groups;  // none twice
  std::vector<Lane> lanes;
  std::vector<Operand> operands;

  // By number; the plan must be well formed (plan/well_formed.h).
  const Pack& pack(std::int32_t number) const { return packs[static_cast<std::size_t>(number)]; }
  const Buffer& buffer(std::int32_t number) const { return buffers[static_cast<std::size_t>(number)]; }
  const Channel& channel(std::int32_t number) const { return channels[static_cast<std::size_t>(number)]; }
  const Group& group(std::int32_t number) const { return groups[static_cast<std::size_t>(number)]; }
  const Lane& lane(std::int32_t number) const { return lanes[static_cast<std::size_t>(number)]; }
  std::int32_t rank_of(std::int32_t device) const { return device_rank[static_cast<std::size_t>(device)]; }
  std::span<const Operand> destinations(const Step& step) const {
    return std::span(operands).subspan(step.first_operand, step.num_destinations);
  }
  std::span<const Operand> sources(const Step& step) const {
    return std::span(operands).subspan(step.first_operand + step.num_destinations, step.num_sources);
  }
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Which step: the `step`th of lane `lane`.
struct StepRef {
  std::int32_t lane = -1;
  std::int32_t step = -1;
  friend bool operator==(const StepRef&, const StepRef&) = default;
};

// Puts the operands in the order of lanes and steps and drops those that no step uses. Well-formed plans have
// this layout, so that equal schedules are equal values. For those who edit plans by hand; Builder does it
// itself.
void lay_out_operands(Plan& plan);

// The canonical order of additions: the binary tree over replica indices that splits n at the largest power
// of two below n. Each source stands for `widths[i]` consecutive replicas, a subtree already summed (1: a
// replica itself); together they stand for all of them. Returns the merges of each source. 1,1,1,1 gives
// 0,1,0,2; 2,1,1,2 (that is (0+1),2,3,(4+5)) gives 0,0,2,1. Throws invalid_argument if a source does not
// stand for a subtree.
std::vector<std::uint8_t> canonical_merges(std::span<const std::uint32_t> widths);

// The same for n replicas.
std::vector<std::uint8_t> canonical_merges(std::size_t replicas);

// A subtree of that tree, or a part of one: replicas [begin, end).
struct Block {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

// Whether the canonical tree over n replicas adds exactly these two neighbours.
bool are_siblings(const Block& left, const Block& right, std::size_t n);

}  // namespace onesum::plan
