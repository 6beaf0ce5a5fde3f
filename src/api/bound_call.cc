#include "api/bound_call.h"

#include <algorithm>
#include <variant>

#include <onesum/error.h>

#include "api/copies.h"
#include "api/engines.h"
#include "api/tensor_state.h"
#include "base/hash.h"

namespace onesum::api {
namespace {

using planner::Stream;
using planner::StreamPart;

// The tensor of a component that a stream is about.
const Tensor::State* part_of(const Value& value, StreamPart part) noexcept {
  if (part == StreamPart::kDense) return std::get_if<Tensor>(&value)->state();
  const auto& slices = *std::get_if<IndexedSlices>(&value);
  return part == StreamPart::kSliceValues ? slices.values.state() : slices.indices.state();
}

std::size_t replica_bytes(const Stream& stream, std::size_t r) {
  return stream.replica_elements[r] * size_of(stream.task.replicas[r].element);
}

// The components of a pair that a process has are neighbours: by pair, the number of its first one.
class FirstHere {
 public:
  void note(std::size_t pair, std::uint32_t number) {
    if (pair >= first_.size()) first_.resize(pair + 1, UINT32_MAX);
    first_[pair] = std::min(first_[pair], number);
  }
  std::uint32_t of(std::size_t pair) const { return first_[pair]; }

 private:
  std::vector<std::uint32_t> first_;
};

// The number in its pair of the ith replica, or result, of a stream.
std::uint32_t number_of(std::span<const std::uint32_t> numbers, std::size_t i) {
  return numbers.empty() ? static_cast<std::uint32_t>(i) : numbers[i];
}

Shape row_of(std::size_t bytes) { return Shape{static_cast<std::int64_t>(bytes)}; }

Tensor make_result(const Stream& stream, const Device& device) {
  return Tensor::empty(stream.result_dtype, stream.result_shape, device);
}

std::uint64_t token_of(const Fingerprint& call, const Fingerprint& program) {
  Hasher hasher;
  for (const std::uint64_t word : {call.low, call.high, program.low, program.high}) hasher.add(word);
  return hasher.finish().low;
}

}  // namespace

BoundCall::BoundCall(const CallTraits& traits, planner::Planned planned, const exec::Site& site,
                     Crossed crossed)
    : traits_(traits),
      planned_(std::move(planned)),
      own_(site.own),
      crossed_(std::move(crossed)),
      instance_(exec::bind(*planned_.plan, planned_.tables, planned_.slots, site), crossed_.transport),
      token_(token_of(crossed_.fingerprint, instance_.program().skeleton)),
      overlap_(make_overlap_check()),
      tensors_(planner::count_tensors(planned_.streams)) {
  for (const Stream& stream : planned_.streams) {
    if (number_of(stream.replica_numbers, 0) == 0) bytes_ += replica_bytes(stream, 0);
  }
  number_slots();
  make_copies();
}

bool BoundCall::is_here(std::int32_t device) const {
  return !own_ || planned_.plan->rank_of(device) == *own_;
}

void BoundCall::number_slots() {
  std::uint32_t slot = 0;
  FirstHere replicas;
  FirstHere results;
  const auto add = [&](std::size_t pair, std::int32_t device, std::uint32_t number, FirstHere& first,
                       std::vector<Place>& places) {
    if (is_here(device)) {
      first.note(pair, number);
      places.push_back({number, slot});
    }
    ++slot;
  };
  for (const Stream& stream : planned_.streams) {
    StreamSlots& slots = slots_.emplace_back();
    const collective::Task& task = stream.task;
    for (std::size_t r = 0; r < task.replicas.size(); ++r) {
      add(stream.pair, task.replicas[r].device, number_of(stream.replica_numbers, r), replicas,
          slots.replicas);
    }
    for (std::size_t d = 0; d < task.destinations.size(); ++d) {
      add(stream.pair, task.destinations[d].device, number_of(stream.result_numbers, d), results,
          slots.results);
    }
  }
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const std::size_t pair = planned_.streams[s].pair;
    for (Place& place : slots_[s].replicas) place.component -= replicas.of(pair);
    for (Place& place : slots_[s].results) place.component -= results.of(pair);
  }
}

void BoundCall::make_copies() {
  std::uint32_t first_slot = 0;
  for (std::size_t s = 0; s < planned_.streams.size(); ++s) {
    const Stream& stream = planned_.streams[s];
    for (const std::uint32_t r : stream.copied_replicas) {
      const auto place = std::ranges::find(slots_[s].replicas, first_slot + r, &Place::slot);
      const std::size_t offset = stream.input_offset * size_of(stream.task.replicas[r].element);
      const Device& device = planned_.devices[static_cast<std::size_t>(stream.task.replicas[r].device)];
      Tensor copy = Tensor::empty(DType::kUInt8, row_of(offset + replica_bytes(stream, r)), device);
      copies_.push_back({s, *place, offset, std::move(copy)});
    }
    first_slot += static_cast<std::uint32_t>(stream.task.replicas.size() + stream.task.destinations.size());
  }
}

void BoundCall::read_copies(const Pairs& pairs) {
  for (ReplicaCopy& its : copies_) {
    const Stream& stream = planned_.streams[its.stream];
    const DistributedValues& value = *pairs[stream.pair].value;
    const Tensor::State& replica = *part_of(value.values()[its.place.component], stream.part);
    const Shape row = row_of(its.copy.bytes() - its.offset);
    its.from = Tensor::borrow(static_cast<std::byte*>(replica.memory) + its.offset, DType::kUInt8, row,
                              replica.device, replica.stream);
    its.to = Tensor::borrow(static_cast<std::byte*>(its.copy.memory()) + its.offset, DType::kUInt8, row,
                            its.copy.device());
    instance_.bases()[its.place.slot] = static_cast<std::byte*>(its.copy.memory());
  }
}

void BoundCall::copy_replicas() {
  for (const ReplicaCopy& its : copies_) copy(its.from, its.to);
}

std::vector<Mirrored> BoundCall::make_results() const {
  std::vector<Mirrored> results;
  results.reserve(planned_.streams.size());
  for (std::size_t s = 0; s < planned_.streams.size(); ++s) {
    const Stream& stream = planned_.streams[s];
    std::vector<Value> components;
    components.reserve(stream.task.destinations.size());
    std::vector<Device> elsewhere;
    const bool sparse = stream.part == StreamPart::kSliceValues;
    for (const collective::Target& target : stream.task.destinations) {
      const Device& device = planned_.devices[static_cast<std::size_t>(target.device)];
      if (!is_here(target.device)) {
        elsewhere.push_back(device);
        continue;
      }
      if (sparse) {
        components.emplace_back(IndexedSlices{
            make_result(stream, device), make_result(planned_.streams[s + 1], device), stream.dense_shape});
      } else {
        components.emplace_back(make_result(stream, device));
      }
    }
    results.emplace_back(std::move(components), std::move(elsewhere));
    if (sparse) ++s;  // its indices
  }
  return results;
}

// Components without a place are not read: of a broadcast, those of workers that are not the root.
bool BoundCall::set_bases(const DistributedValues& values, StreamPart part,
                          std::span<const Place> places) noexcept {
  std::byte** const bases = instance_.bases().data();
  const std::span<const Value> components = values.values();
  bool changed = false;
  for (const Place& place : places) {
    auto* memory = static_cast<std::byte*>(part_of(components[place.component], part)->memory);
    changed = changed || bases[place.slot] != memory;
    bases[place.slot] = memory;
  }
  return changed;
}

void BoundCall::set_addresses(const Pairs& pairs, std::span<const Mirrored> fresh) {
  bool changed = !has_addresses_;
  has_addresses_ = false;  // until these are known to be good
  for (std::size_t s = 0; s < planned_.streams.size(); ++s) {
    const Stream& stream = planned_.streams[s];
    const Pair pair = pairs[stream.pair];
    const DistributedValues& results = pair.results != nullptr ? *pair.results : fresh[stream.pair];
    changed = set_bases(*pair.value, stream.part, slots_[s].replicas) || changed;
    changed = set_bases(results, stream.part, slots_[s].results) || changed;
  }
  if (changed) {
    if (traits_.into) {
      if (const auto overlap = overlap_.find(instance_.bases())) refuse_overlap(*overlap);
    }
    refuse_split_elements();
    read_copies(pairs);
    instance_.bases_changed();
  }
  if (!instance_.program().queued.empty()) find_callers(pairs, fresh);
  has_addresses_ = true;
}

void BoundCall::find_callers(const Pairs& pairs, std::span<const Mirrored> fresh) {
  callers_.clear();
  all_have_streams_ = copies_.empty();  // which the next call writes
  for (std::size_t s = 0; s < planned_.streams.size(); ++s) {
    const Stream& stream = planned_.streams[s];
    const Pair pair = pairs[stream.pair];
    const DistributedValues& results = pair.results != nullptr ? *pair.results : fresh[stream.pair];
    note_streams(*pair.value, stream.part, slots_[s].replicas);
    note_streams(results, stream.part, slots_[s].results);
  }
  instance_.set_callers(callers_, all_have_streams_);
}

void BoundCall::note_streams(const DistributedValues& values, StreamPart part,
                             std::span<const Place> places) {
  for (const Place& place : places) note_stream(*part_of(values.values()[place.component], part));
}

void BoundCall::note_stream(const Tensor::State& state) {
  const engine::QueuedEngine* const engine = queued_engine_of(state.device);
  if (engine == nullptr) return;
  if (!state.stream) {
    all_have_streams_ = false;
    return;
  }
  const std::vector<engine::QueuedEngine*>& units = instance_.program().queued;
  const auto unit = static_cast<exec::Unit>(std::ranges::find(units, engine) - units.begin() + 1);
  const exec::CallerStream caller{unit, *state.stream};
  if (std::ranges::find(callers_, caller) == callers_.end()) callers_.push_back(caller);
}

OverlapCheck BoundCall::make_overlap_check() const {
  std::vector<OverlapCheck::Use> uses;
  for (const Stream& stream : planned_.streams) {
    const std::size_t first = uses.size();
    for (std::size_t r = 0; r < stream.task.replicas.size(); ++r) {
      const collective::Source& replica = stream.task.replicas[r];
      uses.push_back({stream.input_offset * size_of(replica.element),
                      is_here(replica.device) ? replica_bytes(stream, r) : 0, false, false});
    }
    const std::size_t element_bytes = size_of(stream.result_dtype);
    for (const collective::Target& target : stream.task.destinations) {
      uses.push_back({stream.output_offset * element_bytes,
                      is_here(target.device) ? stream.result_shape.elements() * element_bytes : 0, true,
                      false});
      if (target.in_place_of >= 0)
        uses[first + static_cast<std::size_t>(target.in_place_of)].is_replaced = true;
    }
    for (const std::uint32_t r : stream.copied_replicas) uses[first + r].is_replaced = true;
  }
  return OverlapCheck(std::move(uses));
}

void BoundCall::refuse_overlap(std::pair<std::size_t, std::size_t> slots) const {
  throw Error(
      ErrorCode::kInvalidArgument,
      name_of_slot(slots.first) + " and " + name_of_slot(slots.second) +
          (planner::has_parts(traits_.kind)
               ? " share memory; a result may only lie exactly where the part is that it takes the place of"
               : " share memory; a result may only be exactly the replica of its own pair on its own "
                 "device"));
}

// The GPUs' library loads whole elements; our own kernels take any address.
void BoundCall::refuse_split_elements() {
  for (std::size_t p = 0; p < planned_.choices.size(); ++p) {
    if (!planned_.choices[p].native) continue;
    for (const std::size_t s : planned_.pack_streams[p]) {
      const Element element = planned_.streams[s].task.output;
      for (const auto* const slots : {&slots_[s].replicas, &slots_[s].results}) {
        for (const Place& place : *slots) {
          if (reinterpret_cast<std::uintptr_t>(instance_.bases()[place.slot]) % size_of(element) == 0)
            continue;
          throw Error(ErrorCode::kInvalidArgument,
                      name_of_slot(place.slot) + " is of " + std::string(to_string(element)) +
                          " in memory that is not aligned to " + std::to_string(size_of(element)) +
                          " bytes, as native collectives (NCCL) demand; other algorithms take it");
        }
      }
    }
  }
}

std::string BoundCall::name_of_slot(std::size_t slot) const {
  for (const Stream& stream : planned_.streams) {
    const std::size_t replicas = stream.task.replicas.size();
    const std::size_t all = replicas + stream.task.destinations.size();
    if (slot >= all) {
      slot -= all;
      continue;
    }
    const bool is_result = slot >= replicas;
    const std::int32_t device =
        is_result ? stream.task.destinations[slot - replicas].device : stream.task.replicas[slot].device;
    return planner::name_of_pair(traits_.kind, stream.pair) + ": " + (is_result ? "result" : "replica") +
           " on " + planned_.devices[static_cast<std::size_t>(device)].to_string();
  }
  return "slot " + std::to_string(slot);
}

}  // namespace onesum::api
