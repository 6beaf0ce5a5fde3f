#include "exec/bind.h"

#include <algorithm>
#include <string>

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

// The merges of a step with one source.
constexpr std::uint8_t kOneSource[] = {0};

// Messages between lanes of one process wait in memory of a fixed size, too.
constexpr engine::Limits kLocalLimits{std::size_t{1} << 20, UINT32_MAX, 1};

class Binder {
 public:
  Binder(const plan::Plan& plan, std::span<const PackTable> tables, std::size_t tensor_slots,
         const Site& site)
      : plan_(plan),
        tables_(tables),
        engine_(site.engine),
        own_(site.own),
        messages_(messages_of(plan)),
        rounds_(rounds_of(plan, messages_, tables, site.limits.bytes == 0 ? kLocalLimits : site.limits)),
        slots_(plan, messages_, tensor_slots, site.own, site.limits.phases, site.near, rounds_.size()),
        program_(std::make_shared<Program>()) {
    program_->engine = &engine_;
    program_->tensor_slots = tensor_slots;
    program_->peers = slots_.peers;
    program_->phases = slots_.phases;
    program_->window = slots_.window;
    program_->memory_bytes.resize(slots_.of_round);
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
      BoundLane bound{static_cast<std::uint32_t>(program_->steps.size()), kept_[lane].back(),
                      static_cast<std::int32_t>(lane)};
      const std::vector<Step>& steps = plan_.lanes[lane].steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        if (is_kept(lane, s)) program_->steps.push_back(bind_step(steps[s]));
      }
      program_->lanes.push_back(bound);
    }
    round.num_lanes = static_cast<std::uint32_t>(program_->lanes.size()) - round.first_lane;
    program_->rounds.push_back(round);
  }

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
      std::size_t& reserved = program_->memory_bytes[slot - program_->tensor_slots];
      reserved = std::max(reserved, bytes);
    };
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& temp = plan_.buffers[b];
      if (temp.role != Role::kTemp || layout_->table(temp.pack) == nullptr) continue;
      if (!is_own(temp.device) || is_call_result_[b]) continue;
      reserve(slots_.temporaries[b], layout_->bytes_of_temporary(temp));
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
    std::uint32_t lanes = 0;
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (own_ && plan_.lanes[lane].rank != *own_) continue;
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

  BoundStep bind_step(const Step& step) {
    BoundStep bound;
    bound.op = step.op;
    switch (step.op) {
      case Op::kCopy:
      case Op::kReduce:
        bind_arithmetic(step, bound);
        break;
      case Op::kCall:
        bind_call(step, bound);
        break;
      case Op::kWait:
        bound.wait_lane = lane_numbers_[static_cast<std::size_t>(step.lane)];
        bound.wait_steps = kept_[static_cast<std::size_t>(step.lane)][static_cast<std::size_t>(step.step)];
        break;
      case Op::kRecv:
        bound.posting = posting_of(plan_.destinations(step).front());
        break;
      case Op::kNative:
        throw Error(ErrorCode::kUnimplemented,
                    "the plan has a native collective over " +
                        std::to_string(plan_.group(step.group).devices.size()) +
                        " devices, and no engine for native collectives is there; expected an algorithm "
                        "without one");
      case Op::kRelease:
      case Op::kCounts:
        break;
    }
    return bound;
  }

  std::uint32_t posting_of(const Operand& operand) const {
    return number_of_message_[static_cast<std::size_t>(layout_->message_of(operand))];
  }

  void bind_call(const Step& step, BoundStep& bound) {
    const Operand& result = plan_.destinations(step).front();
    if (buffer(result).role != Role::kTemp || step.divisor != 1) {
      throw Error(ErrorCode::kInternal, "a call was bound whose result is divided or not a temporary");
    }
    bound.pack = static_cast<std::uint32_t>(buffer(result).pack);
    bound.device = step.device;
    bound.first_source = add_pointers(step, table(buffer(result).pack).members.front(), 0, 0) + 1;
    bound.num_sources = step.num_sources;
    bound.result_slot = slots_.temporaries[static_cast<std::size_t>(result.buffer)];
  }

  void bind_arithmetic(const Step& step, BoundStep& bound) {
    const std::span<const Operand> sources = plan_.sources(step);
    const std::span<const Operand> destinations = plan_.destinations(step);
    const std::int32_t pack = buffer(sources.front()).pack;
    check_one_type(destinations);
    bound.destinations = static_cast<std::uint32_t>(written(step).size());
    bound.form.input = buffer(sources.front()).element;
    bound.form.output = buffer(destinations.front()).element;
    bound.form.accumulator = step.op == Op::kCopy ? bound.form.input : step.accumulator;
    bound.form.divisor = step.divisor;
    bound.form.destinations = bound.destinations;
    first_merge_.push_back(program_->merges.size());
    for (const Operand& source : sources) program_->merges.push_back(source.merges);
    bind_sends(step, bound);
    if (!are_of_one_type(sources)) bind_widenings(step, bound);

    const plan::Extent range = layout_->extent(pack, sources.front().chunks);
    bound.form.streaming = wants_streaming(step, range.length * table(pack).outer);
    if (table(pack).outer != 1) {
      bind_rows(step, pack, range, bound);
    } else {
      bind_pieces(step, pack, range, bound);
    }
  }

  void bind_sends(const Step& step, BoundStep& bound) {
    bound.first_send = static_cast<std::uint32_t>(program_->sends.size());
    for (const Operand& destination : plan_.destinations(step)) {
      if (buffer(destination).role == Role::kSlot) program_->sends.push_back(posting_of(destination));
    }
    bound.num_sends = static_cast<std::uint32_t>(program_->sends.size()) - bound.first_send;
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

  bool are_of_one_type(std::span<const Operand> operands) const {
    return std::ranges::all_of(operands, [&](const Operand& operand) {
      return buffer(operand).element == buffer(operands.front()).element;
    });
  }

  // Kernels store one type.
  void check_one_type(std::span<const Operand> destinations) const {
    if (are_of_one_type(destinations)) return;
    throw Error(ErrorCode::kInternal, "a step was bound that mixes types among its destinations");
  }

  // Kernels load one type: sources of others are converted to the accumulator's on the way.
  void bind_widenings(const Step& step, BoundStep& bound) {
    if (std::size_t{bound.destinations} + step.num_sources > kMaxMixedOperands) {
      throw Error(ErrorCode::kInternal, "a step was bound that mixes types among more than " +
                                            std::to_string(kMaxMixedOperands) + " operands");
    }
    bound.kind = SegmentKind::kMixed;
    bound.form.input = step.accumulator;
    bound.first_widening = static_cast<std::uint32_t>(program_->widenings.size());
    for (const Operand& source : plan_.sources(step)) {
      Widening widening;
      widening.form.input = buffer(source).element;
      widening.form.accumulator = widening.form.output = step.accumulator;
      widening.form.merges = kOneSource;
      widening.element_bytes = size_of(buffer(source).element);
      if (buffer(source).element != step.accumulator) widening.kernel = engine_.reduce_kernel(widening.form);
      program_->widenings.push_back(widening);
    }
  }

  // Stores may bypass the caches only where no destination is read by the same step, or soon as a message.
  // What counts is what they would push out of the caches: of results all that the call writes, whatever a
  // round has of it.
  bool wants_streaming(const Step& step, std::size_t elements) const {
    if (!are_of_one_type(plan_.sources(step))) return false;
    std::size_t bytes = 0;
    for (const Operand& destination : plan_.destinations(step)) {
      if (buffer(destination).role == Role::kSlot) return false;
      for (const Operand& source : plan_.sources(step)) {
        if (source.buffer == destination.buffer) return false;
      }
      const Buffer& written_to = buffer(destination);
      const bool is_result = written_to.role == Role::kOutput;
      bytes += (is_result ? elements_of_pack(written_to.pack) : elements) * size_of(written_to.element);
    }
    return engine_.prefers_streaming(bytes);
  }

  std::size_t elements_of_pack(std::int32_t pack) const {
    const PackTable& whole = tables_[static_cast<std::size_t>(pack)];
    return whole.elements() * whole.outer;
  }

  std::uint32_t add_pointers(const Step& step, const PackMember& member, std::size_t member_begin,
                             std::size_t element) {
    const auto first = static_cast<std::uint32_t>(program_->pointers.size());
    for (const Operand* operand : written(step)) {
      program_->pointers.push_back(layout_->locate(*operand, member, member_begin, element));
    }
    for (const Operand& operand : plan_.sources(step)) {
      program_->pointers.push_back(layout_->locate(operand, member, member_begin, element));
    }
    return first;
  }

  std::size_t traffic_per_element(const BoundStep& bound, const Step& step) const {
    return size_of(bound.form.output) * bound.destinations + size_of(bound.form.input) * step.num_sources;
  }

  // Into how many segments that are smaller than the engine's a step may be cut.
  std::size_t small_segments(std::size_t step_bytes) const {
    const std::size_t threads = engine_.threads();
    const std::size_t twice = 2 * threads;
    const bool is_large = step_bytes >= twice * 2 * kSmallSegment;
    const std::size_t wanted = is_large ? twice : std::min(threads, step_bytes / kSmallSegment);
    return std::clamp<std::size_t>(wanted, 1, kMostSmallSegments);
  }

  // Of a segment of a step over `length` elements. Where there are other processes, they want the cores: a
  // step of less than three segments is one, which wakes nobody.
  std::size_t segment_elements(const BoundStep& bound, const Step& step, std::size_t length) const {
    const std::size_t traffic = traffic_per_element(bound, step);
    const std::size_t most = engine_.segment_bytes() / traffic / kSegmentGrain * kSegmentGrain;
    std::size_t elements = most;
    if (!program_->peers.empty()) {
      if (length < 3 * most) elements = length;
    } else if (engine_.threads() > 1) {
      const std::size_t share = length / small_segments(length * traffic);
      elements = std::min(most, (share / kSegmentGrain + 1) * kSegmentGrain);
    }
    return std::max(kSegmentGrain, elements);
  }

  // Cuts the range at tensor borders into pieces and fills segments with them.
  void bind_pieces(const Step& step, std::int32_t pack, plan::Extent range, BoundStep& bound) {
    const std::size_t capacity = segment_elements(bound, step, range.length);
    bound.first_segment = static_cast<std::uint32_t>(program_->segments.size());
    std::size_t room = 0;  // elements left in the last segment
    std::size_t member_begin = 0;
    for (const PackMember& member : table(pack).members) {
      const std::size_t begin = std::max(range.offset, member_begin);
      const std::size_t end = std::min(range.offset + range.length, member_begin + member.elements);
      if (begin < end) {
        const std::uint32_t pointers = add_pointers(step, member, member_begin, begin);
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
  void bind_rows(const Step& step, std::int32_t pack, plan::Extent range, BoundStep& bound) {
    if (step.num_sources != 1) {
      throw Error(ErrorCode::kInternal, "a concatenation by rows was bound that adds");
    }
    bound.kind = SegmentKind::kRows;
    bound.first_segment = static_cast<std::uint32_t>(program_->row_copies.size());
    bound.form.destinations = 1;  // rows are copied destination by destination
    if (range.length == 0) return;
    const PackTable& t = table(pack);
    RowCopy rows;
    rows.first_pointer = add_pointers(step, t.members.front(), 0, range.offset);
    rows.first_stride = static_cast<std::uint32_t>(program_->strides.size());
    for (const Operand* operand : written(step)) program_->strides.push_back(layout_->row_bytes(*operand));
    program_->strides.push_back(layout_->row_bytes(plan_.sources(step).front()));
    rows.elements = range.length;
    const std::size_t rows_per_segment =
        std::max<std::size_t>(1, segment_elements(bound, step, range.length * t.outer) / range.length);
    for (rows.first_row = 0; rows.first_row < t.outer; rows.first_row += rows.rows) {
      rows.rows = std::min(rows_per_segment, t.outer - rows.first_row);
      program_->row_copies.push_back(rows);
    }
    bound.num_segments = static_cast<std::uint32_t>(program_->row_copies.size()) - bound.first_segment;
  }

  // Last, as merges may have moved until now.
  void choose_kernels() {
    std::size_t arithmetic = 0;
    for (BoundStep& step : program_->steps) {
      if (step.op != Op::kCopy && step.op != Op::kReduce) continue;
      const std::size_t begin = first_merge_[arithmetic++];
      const std::size_t end =
          arithmetic < first_merge_.size() ? first_merge_[arithmetic] : program_->merges.size();
      step.form.merges = std::span(program_->merges).subspan(begin, end - begin);
      step.kernel = engine_.reduce_kernel(step.form);
    }
  }

  const plan::Plan& plan_;
  std::span<const PackTable> tables_;
  engine::DeviceEngine& engine_;
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
};

}  // namespace

std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, const Site& site) {
  return Binder(plan, tables, tensor_slots, site).bind();
}

}  // namespace onesum::exec
