#include "exec/bind.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "exec/layout.h"

namespace onesum::exec {
namespace {

using plan::Buffer;
using plan::Op;
using plan::Operand;
using plan::PackMember;
using plan::PackTable;
using plan::Role;
using plan::Step;

// Segments begin at multiples of this many elements, so that two threads rarely share a cache line.
constexpr std::size_t kSegmentGrain = 64;

// A step that has no segment of the engine's size for every thread has smaller ones. Not too small, for
// handing one to another thread takes a few hundred nanoseconds; one for each thread, or two where these are
// not small; and not many, for their number decides whether a thread is woken.
constexpr std::size_t kSmallSegment = std::size_t{64} << 10;  // bytes of traffic
constexpr std::size_t kMostSmallSegments = 8;

// What a step has of staging memory at a time, and where operands begin in it.
constexpr std::size_t kStagingBytes = std::size_t{4} << 20;
constexpr std::size_t kStagingAlignment = 64;

// The merges of a step with one source.
constexpr std::uint8_t kOneSource[] = {0};

// Messages between lanes of one process wait in memory of a fixed size, too.
constexpr engine::Limits kLocalLimits{std::size_t{1} << 20, UINT32_MAX, 1};

// Who works for the devices of a plan.
class Units {
 public:
  Units(const plan::Plan& plan, const Site& site) : of_device_(plan.device_rank.size(), kHost) {
    for (std::size_t d = 0; d < site.queued.size(); ++d) {
      if (site.queued[d] == nullptr) continue;
      const auto known = std::ranges::find(engines_, site.queued[d]);
      of_device_[d] = static_cast<Unit>(known - engines_.begin() + 1);
      if (known == engines_.end()) engines_.push_back(site.queued[d]);
    }
  }

  const std::vector<engine::QueuedEngine*>& all() const { return engines_; }
  Unit of(std::int32_t device) const { return of_device_[static_cast<std::size_t>(device)]; }

  bool reaches(Unit unit, Unit owner) const {
    if (unit == owner) return true;
    return unit != kHost && owner != kHost && engines_[unit - 1u]->reaches(*engines_[owner - 1u]);
  }

 private:
  std::vector<engine::QueuedEngine*> engines_;
  std::vector<Unit> of_device_;
};

class Binder {
 public:
  Binder(const plan::Plan& plan, std::span<const PackTable> tables, std::size_t tensor_slots,
         const Site& site)
      : plan_(plan),
        tables_(tables),
        host_(site.host),
        units_(plan, site),
        communicators_(site.communicators),
        own_(site.own),
        messages_(messages_of(plan)),
        rounds_(rounds_of(plan, messages_, tables, site.limits.bytes == 0 ? kLocalLimits : site.limits)),
        slots_(plan, messages_, tensor_slots, site.own,
               {site.limits.phases, site.near,
                site.near.empty() ? 0 : fullest_outbox(plan, messages_, rounds_, site.limits)},
               rounds_.size(), units_.all().empty() ? 0 : plan.lanes.size()),
        program_(std::make_shared<Program>()) {
    program_->host = &host_;
    program_->queued = units_.all();
    program_->tensor_slots = tensor_slots;
    program_->peers = slots_.peers;
    program_->phases = slots_.phases;
    program_->turns = slots_.turns;
    program_->window = slots_.window;
    program_->memory.resize(slots_.of_round);
    memory(slots_.local_messages).is_staging = !units_.all().empty();
    find_call_results();
  }

  std::shared_ptr<const Program> bind() {
    for (std::size_t r = 0; r < rounds_.size(); ++r) {
      const Layout layout(plan_, messages_, rounds_[r], slots_, own_, r);
      layout_ = &layout;
      bind_round();
    }
    program_->skeleton = skeleton_.finish();
    choose_kernels();
    return program_;
  }

 private:
  const Buffer& buffer(const Operand& operand) const { return plan_.buffer(operand.buffer); }
  const PackTable& table(std::int32_t pack) const { return *layout_->table(pack); }

  void bind_round() {
    BoundRound round;
    round.first_lane = static_cast<std::uint32_t>(program_->lanes.size());
    reserve_memory();
    add_postings(round);
    add_to_skeleton();
    number_lanes();
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (kept_[lane].empty() || kept_[lane].back() == 0) continue;
      bind_lane(lane);
    }
    round.num_lanes = static_cast<std::uint32_t>(program_->lanes.size()) - round.first_lane;
    for (std::uint32_t lane = 0; lane < round.num_lanes; ++lane) {
      count_waits(program_->lanes[round.first_lane + lane]);
    }
    program_->rounds.push_back(round);
  }

  void bind_lane(std::size_t lane) {
    const auto first = static_cast<std::uint32_t>(program_->steps.size());
    staging_slot_ = slots_.staging + static_cast<std::uint32_t>(lane);
    const std::vector<Step>& steps = plan_.lanes[lane].steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (is_kept(lane, s)) bind_step(steps[s]);
      ends_[lane][s] = static_cast<std::uint32_t>(program_->steps.size()) - first;
    }
    const auto bound = static_cast<std::uint32_t>(program_->steps.size()) - first;
    choose_units_of_waits(std::span(program_->steps).subspan(first, bound));
    program_->lanes.push_back({first, bound, static_cast<std::int32_t>(lane)});
  }

  // A step of the plan may have become several, in lanes that were bound later, too.
  void count_waits(const BoundLane& lane) {
    for (std::uint32_t s = 0; s < lane.num_steps; ++s) {
      BoundStep& step = program_->steps[lane.first_step + s];
      if (step.op != Op::kWait) continue;
      step.wait_steps = ends_[step.wait_lane][step.wait_steps];
      step.wait_lane = lane_numbers_[step.wait_lane];
    }
  }

  // What waits does so where the next work is done, or, at the end of a lane, where the last was.
  static void choose_units_of_waits(std::span<BoundStep> steps) {
    Unit unit = kHost;
    for (const BoundStep& step : steps) {
      if (plan::is_work(step.op)) unit = step.unit;
    }
    for (std::size_t s = steps.size(); s-- > 0;) {
      if (plan::is_work(steps[s].op)) unit = steps[s].unit;
      steps[s].unit = unit;
    }
  }

  Memory& memory(std::uint32_t slot) { return program_->memory[slot - program_->tensor_slots]; }

  // The memory of what a call gives is the call's.
  void find_call_results() {
    is_call_result_.resize(plan_.buffers.size());
    for (const plan::Lane& lane : plan_.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op != Op::kCall) continue;
        is_call_result_[static_cast<std::size_t>(plan_.destinations(step).front().buffer)] = true;
      }
    }
  }

  // As much as the largest round needs: rounds that are not under way at the same time share it.
  void reserve_memory() {
    const auto reserve = [&](std::uint32_t slot, std::size_t bytes) {
      memory(slot).bytes = std::max(memory(slot).bytes, bytes);
    };
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& temp = plan_.buffers[b];
      if (temp.role != Role::kTemp || layout_->table(temp.pack) == nullptr) continue;
      if (!is_own(temp.device) || is_call_result_[b]) continue;
      reserve(slots_.temporaries[b], layout_->bytes_of_temporary(temp));
      memory(slots_.temporaries[b]).unit = units_.of(temp.device);
    }
    reserve(slots_.local_messages, layout_->mail().local_bytes);
  }

  bool is_own(std::int32_t device) const { return !own_ || plan_.rank_of(device) == *own_; }

  void add_postings(BoundRound& round) {
    round.first_posting = static_cast<std::uint32_t>(program_->postings.size());
    round.first_incoming = static_cast<std::uint32_t>(program_->incoming.size());
    number_of_message_.assign(messages_.all.size(), 0);
    for (std::size_t m = 0; m < messages_.all.size(); ++m) {
      const Posting& posting = layout_->mail().postings[m];
      if (posting.way == Way::kForeign) continue;
      number_of_message_[m] = static_cast<std::uint32_t>(program_->postings.size());
      program_->postings.push_back(posting);
      if (posting.way == Way::kIncoming) program_->incoming.push_back(posting.place);
    }
    round.num_postings = static_cast<std::uint32_t>(program_->postings.size()) - round.first_posting;
    round.num_incoming = static_cast<std::uint32_t>(program_->incoming.size()) - round.first_incoming;
  }

  void add_to_skeleton() {
    const std::vector<std::int64_t> bytes = layout_->bytes_of_messages();
    for (std::size_t m = 0; m < messages_.all.size(); ++m) {
      const plan::Channel& channel = plan_.channel(messages_.all[m].channel);
      skeleton_.add(static_cast<std::uint64_t>(plan_.rank_of(channel.from)) << 32 |
                    static_cast<std::uint32_t>(plan_.rank_of(channel.to)));
      skeleton_.add(static_cast<std::uint64_t>(bytes[m]));
      skeleton_.add(static_cast<std::uint64_t>(messages_.alike[m]));
      skeleton_.add(static_cast<std::uint64_t>(plan_.buffer(messages_.all[m].buffer).element));
    }
  }

  // Of each lane that runs here, how many of its first steps the round has, for every number of them.
  void number_lanes() {
    kept_.assign(plan_.lanes.size(), {});
    lane_numbers_.assign(plan_.lanes.size(), 0);
    ends_.assign(plan_.lanes.size(), {});
    std::uint32_t lanes = 0;
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (own_ && plan_.lanes[lane].rank != *own_) continue;
      ends_[lane].assign(plan_.lanes[lane].steps.size(), 0);
      std::uint32_t kept = 0;
      for (std::size_t s = 0; s < plan_.lanes[lane].steps.size(); ++s) {
        kept += is_kept(lane, s) ? 1 : 0;
        kept_[lane].push_back(kept);
      }
      if (kept > 0) lane_numbers_[lane] = lanes++;
    }
  }

  // Steps of packs that are not in the round are left out, and so are those that say nothing to a run: every
  // message has memory of its own, which is not given back before the round ends; and the rows that replicas
  // bring are in the packs' tables. Of a part that is cut around a call, the steps on its side are kept, and
  // the call by the first part after it.
  bool is_kept(std::size_t lane, std::size_t number) const {
    const Step& step = plan_.lanes[lane].steps[number];
    switch (step.op) {
      case Op::kRelease:
      case Op::kCounts:
        return false;
      case Op::kWait:
        return true;
      default: {
        const Part* const part = layout_->part(buffer(plan_.destinations(step).front()).pack);
        return part != nullptr && has_side(*part, messages_.stages.is_after[lane][number]) &&
               (step.op != Op::kCall || part->first == 0);
      }
    }
  }

  void bind_step(const Step& step) {
    BoundStep bound;
    bound.op = step.op;
    switch (step.op) {
      case Op::kCopy:
      case Op::kReduce:
        return bind_arithmetic(step);
      case Op::kCall:
        bind_call(step, bound);
        break;
      case Op::kWait:  // as the plan has them, until all lanes are bound
        bound.wait_lane = static_cast<std::uint32_t>(step.lane);
        bound.wait_steps = static_cast<std::uint32_t>(step.step);
        break;
      case Op::kRecv:
        bound.posting = posting_of(plan_.destinations(step).front());
        break;
      case Op::kNative:
        bind_native(step, bound);
        break;
      case Op::kRelease:
      case Op::kCounts:
        return;
    }
    program_->steps.push_back(bound);
  }

  std::uint32_t posting_of(const Operand& operand) const {
    return number_of_message_[static_cast<std::size_t>(layout_->message_of(operand))];
  }

  void bind_native(const Step& step, BoundStep& bound) {
    const auto group = static_cast<std::size_t>(step.group);
    if (group >= communicators_.size() || communicators_[group] == nullptr) {
      throw Error(ErrorCode::kUnimplemented,
                  "the plan has a native collective over " +
                      std::to_string(plan_.groups[group].devices.size()) +
                      " devices, and no engine for native collectives is there; expected an algorithm "
                      "without one");
    }
    const std::vector<std::int32_t>& devices = plan_.groups[group].devices;
    BoundNative native;
    native.communicator = number_of(communicators_[group]);
    native.spans_processes = !std::ranges::all_of(devices, [&](std::int32_t d) { return is_own(d); });
    native.collective = static_cast<engine::NativeCollective>(step.collective);
    const Operand& any = plan_.operands[step.first_operand];
    native.element = buffer(any).element;
    native.root = root_of(step, devices);
    native.first_count = static_cast<std::uint32_t>(program_->native_counts.size());
    native.first_share = static_cast<std::uint32_t>(program_->native_shares.size());
    add_shares(step, devices, any);
    native.num_counts = static_cast<std::uint32_t>(program_->native_counts.size()) - native.first_count;
    bound.native = static_cast<std::uint32_t>(program_->natives.size());
    bound.unit = units_.of(step.device);
    program_->natives.push_back(native);
  }

  std::uint32_t number_of(const std::shared_ptr<engine::Communicator>& communicator) {
    auto& all = program_->communicators;
    const auto known = std::ranges::find(all, communicator);
    if (known != all.end()) return static_cast<std::uint32_t>(known - all.begin());
    all.push_back(communicator);
    return static_cast<std::uint32_t>(all.size()) - 1;
  }

  // The device, among the group's, that has the one destination of a reduce or the one source of a broadcast.
  int root_of(const Step& step, const std::vector<std::int32_t>& devices) const {
    if (step.collective == plan::Collective::kAllReduce) return -1;
    const std::span<const Operand> at_root =
        step.collective == plan::Collective::kReduce ? plan_.destinations(step) : plan_.sources(step);
    if (at_root.size() != 1) {
      throw Error(ErrorCode::kInternal, "a native collective was bound whose root is in another process");
    }
    return static_cast<int>(std::ranges::find(devices, buffer(at_root.front()).device) - devices.begin());
  }

  // Of every tensor that the chunks touch, what each device of this process has of it.
  void add_shares(const Step& step, const std::vector<std::int32_t>& devices, const Operand& any) {
    const std::int32_t pack = buffer(any).pack;
    const plan::Extent range = layout_->extent(pack, any.chunks);
    std::size_t member_begin = 0;
    for (const PackMember& member : table(pack).members) {
      const std::size_t begin = std::max(range.offset, member_begin);
      const std::size_t end = std::min(range.offset + range.length, member_begin + member.elements);
      if (begin < end) {
        program_->native_counts.push_back(end - begin);
        for (const std::int32_t device : devices) {
          if (!is_own(device)) continue;
          const auto pointer = [&](std::span<const Operand> operands) -> std::int32_t {
            const auto its = std::ranges::find_if(
                operands, [&](const Operand& operand) { return buffer(operand).device == device; });
            if (its == operands.end()) return -1;
            program_->pointers.push_back(layout_->locate(*its, member, member_begin, begin));
            return static_cast<std::int32_t>(program_->pointers.size()) - 1;
          };
          program_->native_shares.push_back(
              {pointer(plan_.destinations(step)), pointer(plan_.sources(step))});
        }
      }
      member_begin += member.elements;
    }
  }

  void bind_call(const Step& step, BoundStep& bound) {
    const Operand& result = plan_.destinations(step).front();
    if (buffer(result).role != Role::kTemp || step.divisor != 1) {
      throw Error(ErrorCode::kInternal, "a call was bound whose result is divided or not a temporary");
    }
    bound.pack = static_cast<std::uint32_t>(buffer(result).pack);
    bound.device = step.device;
    bound.first_source = static_cast<std::uint32_t>(program_->pointers.size());
    const PackMember& member = table(buffer(result).pack).members.front();
    for (const Operand& source : plan_.sources(step)) {
      program_->pointers.push_back(layout_->locate(source, member, 0, 0));
    }
    bound.num_sources = step.num_sources;
    bound.result_slot = slots_.temporaries[static_cast<std::size_t>(result.buffer)];
  }

  // An operand as a unit sees it: where it is, or in the lane's staging memory, from this byte on.
  struct View {
    const Operand* operand = nullptr;
    std::optional<std::size_t> staged{};
  };

  // What one bound step does to a run of elements.
  struct Work {
    const Step& step;
    Unit unit = kHost;
    std::vector<View> destinations{};
    std::vector<View> sources{};
    engine::ReduceForm form{};
    plan::Extent range{};
    bool sends = true;  // and this is the last of the step's work: messages are complete
  };

  void bind_arithmetic(const Step& step) {
    check_one_type(plan_.destinations(step));
    const Operand& first = plan_.sources(step).front();
    Work work{step, units_.of(step.device)};
    for (const Operand* operand : written(step)) work.destinations.push_back({operand});
    for (const Operand& operand : plan_.sources(step)) work.sources.push_back({&operand});
    work.form.input = buffer(first).element;
    work.form.output = buffer(plan_.destinations(step).front()).element;
    work.form.accumulator = step.op == Op::kCopy ? work.form.input : step.accumulator;
    work.form.divisor = step.divisor;
    work.range = layout_->extent(buffer(first).pack, first.chunks);
    if (program_->queued.empty()) {
      bind_work(work);
    } else {
      bind_staged(work);
    }
  }

  // Whose memory an operand is in: all units reach what nobody owns.
  std::optional<Unit> owner_of(const Operand& operand) const {
    const Buffer& its = buffer(operand);
    if (its.role != Role::kSlot && its.role != Role::kView) return units_.of(its.device);
    if (program_->postings[posting_of(operand)].way == Way::kLocal) return std::nullopt;
    return kHost;
  }
  bool reaches(Unit unit, const Operand& operand) const {
    const std::optional<Unit> owner = owner_of(operand);
    return !owner || units_.reaches(unit, *owner);
  }

  // Where a unit does not reach an operand, who owns its memory copies it to or from staging memory, a part
  // of the step at a time.
  void bind_staged(Work work) {
    std::size_t bytes = 0;  // of staging memory, for an element
    for (View& source : work.sources) {
      if (reaches(work.unit, *source.operand)) continue;
      source.staged = 0;
      bytes += size_of(buffer(*source.operand).element);
    }
    std::map<Unit, std::vector<View>> copies;  // of the result, by who makes them
    for (const View& destination : work.destinations) {
      if (reaches(work.unit, *destination.operand)) continue;
      copies[*owner_of(*destination.operand)].push_back(destination);
    }
    if (!copies.empty()) bytes += size_of(work.form.output);
    if (bytes == 0) return bind_work(work);
    std::erase_if(work.destinations, [&](const View& view) { return !reaches(work.unit, *view.operand); });

    const plan::Extent whole = work.range;
    const std::size_t most = elements_at_a_time(work, bytes);
    std::size_t done = 0;
    do {
      work.range = {whole.offset + done, std::min(most, whole.length - done)};
      done += work.range.length;
      work.sends = done == whole.length;
      bind_part(work, copies);
    } while (done < whole.length);
  }

  // Rows are staged whole, and so are messages to other processes: before the first part of one is written
  // its receiver must have read the one before, and the executor asks where a message is sent.
  std::size_t elements_at_a_time(const Work& work, std::size_t bytes) const {
    const bool has_message = std::ranges::any_of(plan_.destinations(work.step), [&](const Operand& operand) {
      return buffer(operand).role == Role::kSlot && owner_of(operand) == kHost;
    });
    if (has_message || table(pack_of(work)).outer != 1) return std::max<std::size_t>(1, work.range.length);
    return std::max(kSegmentGrain, kStagingBytes / bytes / kSegmentGrain * kSegmentGrain);
  }

  void bind_part(Work work, const std::map<Unit, std::vector<View>>& copies) {
    std::size_t used = 0;  // bytes of staging memory
    const auto stage = [&](Element element) {
      const std::size_t begin = used;
      const std::size_t bytes = work.range.length * table(pack_of(work)).outer * size_of(element);
      used += (bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
      return begin;
    };
    for (View& source : work.sources) {
      if (!source.staged) continue;
      const Element element = buffer(*source.operand).element;
      source.staged = stage(element);
      const View copy{source.operand, source.staged};
      bind_work(copy_of(work, *owner_of(*source.operand), element, {copy}, {{source.operand}}));
    }
    if (copies.empty()) {
      bind_work(work);
    } else {
      const View result{copies.begin()->second.front().operand, stage(work.form.output)};
      work.destinations.push_back(result);
      bind_work(work);
      for (const auto& [unit, destinations] : copies) {
        Work copy = copy_of(work, unit, work.form.output, destinations, {result});
        copy.sends = work.sends;
        bind_work(copy);
      }
    }
    Memory& staging = memory(staging_slot_);
    staging.is_staging = true;
    staging.bytes = std::max(staging.bytes, used);
  }

  Work copy_of(const Work& work, Unit unit, Element element, std::vector<View> destinations,
               std::vector<View> sources) const {
    Work copy{work.step, unit, std::move(destinations), std::move(sources)};
    copy.form.input = copy.form.accumulator = copy.form.output = element;
    copy.range = work.range;
    copy.sends = false;
    return copy;
  }

  std::int32_t pack_of(const Work& work) const { return buffer(*work.sources.front().operand).pack; }

  void bind_work(const Work& work) {
    BoundStep bound;
    bound.op = Op::kReduce;  // a copy is one of a single source
    bound.unit = work.unit;
    bound.destinations = static_cast<std::uint32_t>(work.destinations.size());
    bound.form = work.form;
    bound.form.destinations = work.destinations.size();
    first_merge_.push_back(program_->merges.size());
    for (const View& source : work.sources) {
      program_->merges.push_back(work.sources.size() == 1 ? std::uint8_t{0} : source.operand->merges);
    }
    bind_sends(work, bound);
    if (!are_of_one_type(work.sources)) bind_widenings(work, bound);
    if (work.unit == kHost) bound.form.streaming = wants_streaming(work);
    if (table(pack_of(work)).outer != 1) {
      bind_rows(work, bound);
    } else {
      bind_pieces(work, bound);
    }
    program_->steps.push_back(bound);
  }

  // Messages that nobody has to write are sent with those that have the same content.
  void bind_sends(const Work& work, BoundStep& bound) {
    bound.first_send = static_cast<std::uint32_t>(program_->sends.size());
    for (const Operand& destination : plan_.destinations(work.step)) {
      if (buffer(destination).role == Role::kSlot && is_sent_by(work, destination)) {
        program_->sends.push_back(posting_of(destination));
      }
    }
    bound.num_sends = static_cast<std::uint32_t>(program_->sends.size()) - bound.first_send;
  }

  // All messages to other processes are written by the same unit, and so are all others.
  bool is_sent_by(const Work& work, const Operand& message) const {
    if (!work.sends) return false;
    if (program_->queued.empty()) return true;
    const auto is_alike = [&](const View& view) {
      return !view.staged && buffer(*view.operand).role == Role::kSlot &&
             owner_of(*view.operand) == owner_of(message);
    };
    return std::ranges::any_of(work.destinations, is_alike);
  }

  // The destinations, of messages with the same content in one place only one.
  std::vector<const Operand*> written(const Step& step) const {
    std::vector<const Operand*> operands;
    for (const Operand& operand : plan_.destinations(step)) {
      const bool is_message = buffer(operand).role == Role::kSlot;
      if (is_message && !program_->postings[posting_of(operand)].is_written) continue;
      operands.push_back(&operand);
    }
    return operands;
  }

  bool are_of_one_type(std::span<const View> views) const {
    return std::ranges::all_of(views, [&](const View& view) {
      return buffer(*view.operand).element == buffer(*views.front().operand).element;
    });
  }

  // Kernels store one type.
  void check_one_type(std::span<const Operand> destinations) const {
    const Element element = buffer(destinations.front()).element;
    if (std::ranges::all_of(destinations,
                            [&](const Operand& operand) { return buffer(operand).element == element; })) {
      return;
    }
    throw Error(ErrorCode::kInternal, "a step was bound that mixes types among its destinations");
  }

  // Kernels of the host load one type: sources of others are converted to the accumulator's on the way. Those
  // of queued units load two.
  void bind_widenings(const Work& work, BoundStep& bound) {
    bound.kind = SegmentKind::kMixed;
    if (work.unit != kHost) return bind_wide_sources(work, bound);
    if (work.destinations.size() + work.sources.size() > kMaxMixedOperands) {
      throw Error(ErrorCode::kInternal, "a step was bound that mixes types among more than " +
                                            std::to_string(kMaxMixedOperands) + " operands");
    }
    bound.form.input = work.form.accumulator;
    bound.first_widening = static_cast<std::uint32_t>(program_->widenings.size());
    for (const View& source : work.sources) {
      const Element element = buffer(*source.operand).element;
      Widening widening;
      widening.form.input = element;
      widening.form.accumulator = widening.form.output = work.form.accumulator;
      widening.form.merges = kOneSource;
      widening.element_bytes = size_of(element);
      if (element != work.form.accumulator) widening.kernel = host_.reduce_kernel(widening.form);
      program_->widenings.push_back(widening);
    }
  }

  void bind_wide_sources(const Work& work, BoundStep& bound) {
    bound.first_widening = static_cast<std::uint32_t>(program_->is_wide.size());
    for (const View& source : work.sources) {
      const Element element = buffer(*source.operand).element;
      const bool is_wide = element == work.form.accumulator;
      if (!is_wide) bound.form.input = element;
      program_->is_wide.push_back(is_wide ? 1 : 0);
    }
    for (const View& source : work.sources) {
      const Element element = buffer(*source.operand).element;
      if (element == work.form.accumulator || element == bound.form.input) continue;
      throw Error(ErrorCode::kInternal, "a step was bound that mixes more than two types");
    }
  }

  // Stores may bypass the caches only where no destination is read by the same step, or soon as a message.
  // What counts is what they would push out of the caches: of results all that the call writes, whatever a
  // round has of it.
  bool wants_streaming(const Work& work) const {
    if (!are_of_one_type(work.sources)) return false;
    const std::size_t elements = work.range.length * table(pack_of(work)).outer;
    std::size_t bytes = 0;
    for (const View& destination : work.destinations) {
      const Buffer& written_to = buffer(*destination.operand);
      if (destination.staged || written_to.role == Role::kSlot) return false;
      for (const View& source : work.sources) {
        if (source.operand->buffer == destination.operand->buffer) return false;
      }
      const bool is_result = written_to.role == Role::kOutput;
      bytes += (is_result ? elements_of_pack(written_to.pack) : elements) * size_of(written_to.element);
    }
    return host_.prefers_streaming(bytes);
  }

  std::size_t elements_of_pack(std::int32_t pack) const {
    const PackTable& whole = tables_[static_cast<std::size_t>(pack)];
    return whole.elements() * whole.outer;
  }

  PointerSource locate(const Work& work, const View& view, const PackMember& member, std::size_t member_begin,
                       std::size_t element) const {
    if (!view.staged) return layout_->locate(*view.operand, member, member_begin, element);
    const std::size_t bytes = (element - work.range.offset) * size_of(buffer(*view.operand).element);
    return {staging_slot_ + slots_.turn(layout_->number()), *view.staged + bytes};
  }

  std::uint32_t add_pointers(const Work& work, const PackMember& member, std::size_t member_begin,
                             std::size_t element) {
    const auto first = static_cast<std::uint32_t>(program_->pointers.size());
    for (const std::vector<View>* views : {&work.destinations, &work.sources}) {
      for (const View& view : *views) {
        program_->pointers.push_back(locate(work, view, member, member_begin, element));
      }
    }
    return first;
  }

  std::size_t traffic_per_element(const Work& work) const {
    return size_of(work.form.output) * work.destinations.size() +
           size_of(work.form.input) * work.sources.size();
  }

  // Into how many segments that are smaller than the engine's a step may be cut.
  std::size_t small_segments(std::size_t step_bytes) const {
    const std::size_t threads = host_.threads();
    const std::size_t twice = 2 * threads;
    const bool is_large = step_bytes >= twice * 2 * kSmallSegment;
    const std::size_t wanted = is_large ? twice : std::min(threads, step_bytes / kSmallSegment);
    return std::clamp<std::size_t>(wanted, 1, kMostSmallSegments);
  }

  // Of a segment of a step over `length` elements. Where there are other processes, they want the cores: a
  // step of less than three segments is one, which wakes nobody.
  std::size_t segment_elements(const Work& work, std::size_t length) const {
    if (work.unit != kHost) return std::max(kSegmentGrain, length);
    const std::size_t traffic = traffic_per_element(work);
    const std::size_t most = host_.segment_bytes() / traffic / kSegmentGrain * kSegmentGrain;
    std::size_t elements = most;
    if (!program_->peers.empty()) {
      if (length < 3 * most) elements = length;
    } else if (host_.threads() > 1) {
      const std::size_t share = length / small_segments(length * traffic);
      elements = std::min(most, (share / kSegmentGrain + 1) * kSegmentGrain);
    }
    return std::max(kSegmentGrain, elements);
  }

  // Cuts the range at tensor borders into pieces and fills segments with them.
  void bind_pieces(const Work& work, BoundStep& bound) {
    const plan::Extent& range = work.range;
    const std::size_t capacity = segment_elements(work, range.length);
    bound.first_segment = static_cast<std::uint32_t>(program_->segments.size());
    std::size_t room = 0;  // elements left in the last segment
    std::size_t member_begin = 0;
    for (const PackMember& member : table(pack_of(work)).members) {
      const std::size_t begin = std::max(range.offset, member_begin);
      const std::size_t end = std::min(range.offset + range.length, member_begin + member.elements);
      if (begin < end) {
        const std::uint32_t pointers = add_pointers(work, member, member_begin, begin);
        for (std::size_t first = 0; first < end - begin;) {
          if (room == 0) {
            program_->segments.push_back({static_cast<std::uint32_t>(program_->pieces.size()), 0});
            room = capacity;
          }
          const std::size_t count = std::min(room, end - begin - first);
          program_->pieces.push_back({pointers, first, count});
          ++program_->segments.back().num_pieces;
          first += count;
          room -= count;
        }
      }
      member_begin += member.elements;
    }
    bound.num_segments = static_cast<std::uint32_t>(program_->segments.size()) - bound.first_segment;
  }

  // A concatenation along an inner axis: a chunk is a column of the result, and contiguous, row after row, in
  // what its replica brings and in messages.
  void bind_rows(const Work& work, BoundStep& bound) {
    const plan::Extent& range = work.range;
    if (work.sources.size() != 1 || (work.unit != kHost && !is_plain_copy(work.form))) {
      throw Error(ErrorCode::kInternal, "a concatenation by rows was bound that adds or converts");
    }
    bound.kind = SegmentKind::kRows;
    bound.first_segment = static_cast<std::uint32_t>(program_->row_copies.size());
    bound.form.destinations = 1;  // rows are copied destination by destination
    if (range.length == 0) return;
    const PackTable& t = table(pack_of(work));
    RowCopy rows;
    rows.first_pointer = add_pointers(work, t.members.front(), 0, range.offset);
    rows.first_stride = static_cast<std::uint32_t>(program_->strides.size());
    for (const std::vector<View>* views : {&work.destinations, &work.sources}) {
      for (const View& view : *views) {
        program_->strides.push_back(view.staged ? range.length * size_of(buffer(*view.operand).element)
                                                : layout_->row_bytes(*view.operand));
      }
    }
    rows.elements = range.length;
    const std::size_t rows_per_segment =
        std::max<std::size_t>(1, segment_elements(work, range.length * t.outer) / range.length);
    for (rows.first_row = 0; rows.first_row < t.outer; rows.first_row += rows.rows) {
      rows.rows = std::min(rows_per_segment, t.outer - rows.first_row);
      program_->row_copies.push_back(rows);
    }
    bound.num_segments = static_cast<std::uint32_t>(program_->row_copies.size()) - bound.first_segment;
  }

  static bool is_plain_copy(const engine::ReduceForm& form) {
    return form.input == form.output && form.divisor == 1;
  }

  // Last, as merges may have moved until now.
  void choose_kernels() {
    std::size_t arithmetic = 0;
    for (BoundStep& step : program_->steps) {
      if (step.op != Op::kReduce) continue;
      const std::size_t begin = first_merge_[arithmetic++];
      const std::size_t end =
          arithmetic < first_merge_.size() ? first_merge_[arithmetic] : program_->merges.size();
      step.form.merges = std::span(program_->merges).subspan(begin, end - begin);
      if (step.unit == kHost) {
        step.kernel = host_.reduce_kernel(step.form);
      } else {
        program_->queued[step.unit - 1u]->check_form(step.form);
      }
    }
  }

  const plan::Plan& plan_;
  std::span<const PackTable> tables_;
  engine::ThreadedEngine& host_;
  Units units_;
  std::vector<std::shared_ptr<engine::Communicator>> communicators_;  // by group
  OwnRank own_;
  Messages messages_;
  std::vector<Round> rounds_;
  SlotNumbers slots_;
  std::shared_ptr<Program> program_;
  std::vector<bool> is_call_result_;      // by buffer
  std::vector<std::size_t> first_merge_;  // of each arithmetic step, in order

  Hasher skeleton_;

  // Of the round at hand.
  const Layout* layout_ = nullptr;
  std::vector<std::uint32_t> number_of_message_;  // in Program::postings
  std::vector<std::vector<std::uint32_t>> kept_;  // by lane of the plan and step
  std::vector<std::uint32_t> lane_numbers_;       // by lane of the plan, in the round
  std::vector<std::vector<std::uint32_t>> ends_;  // by lane of the plan and step: how many are bound up to it
  std::uint32_t staging_slot_ = 0;                // of the lane at hand, in the first round
};

}  // namespace

std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, const Site& site) {
  return Binder(plan, tables, tensor_slots, site).bind();
}

}  // namespace onesum::exec
