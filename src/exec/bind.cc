#include "exec/bind.h"

#include <algorithm>

#include <onesum/error.h>

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

class Binder {
 public:
  Binder(const plan::Plan& plan, std::span<const PackTable> tables, std::size_t tensor_slots,
         engine::DeviceEngine& engine)
      : plan_(plan), tables_(tables), engine_(engine), program_(std::make_shared<Program>()) {
    program_->engine = &engine;
    program_->tensor_slots = tensor_slots;
  }

  std::shared_ptr<const Program> bind() {
    number_temporaries();
    for (const plan::Lane& lane : plan_.lanes) {
      program_->lanes.emplace_back();
      for (const Step& step : lane.steps) program_->lanes.back().push_back(bind_step(step));
    }
    choose_kernels();
    return program_;
  }

 private:
  const Buffer& buffer(const Operand& operand) const {
    return plan_.buffers[static_cast<std::size_t>(operand.buffer)];
  }
  const PackTable& table(std::size_t pack) const { return tables_[pack]; }

  plan::Extent extent(std::size_t pack, plan::Chunks chunks) const {
    return plan::extent_of(plan_.packs[pack].split, table(pack).elements(), table(pack).counts, chunks);
  }

  // Where a buffer's own memory begins, in elements of its pack. Replicas and results are tensors,
  // `member_begin` is where the one at hand begins; what a replica brings to a concatenation is its own
  // chunk.
  std::size_t memory_begin(const Buffer& b, std::size_t member_begin) const {
    const auto pack = static_cast<std::size_t>(b.pack);
    if (b.role == Role::kTemp) return extent(pack, {b.window.first, 1}).offset;
    if (b.role == Role::kInput && plan_.packs[pack].contract == plan::Contract::kConcatenate) {
      return extent(pack, {static_cast<std::uint32_t>(b.index), 1}).offset;
    }
    return member_begin;
  }

  void number_temporaries() {
    temp_slots_.resize(plan_.buffers.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& temp = plan_.buffers[b];
      if (temp.role != Role::kTemp) continue;
      if (table(static_cast<std::size_t>(temp.pack)).outer > 1) {
        throw Error(ErrorCode::kInternal, "a concatenation by rows was bound with a temporary");
      }
      temp_slots_[b] = static_cast<std::uint32_t>(program_->tensor_slots + program_->temp_bytes.size());
      const std::size_t elements = extent(static_cast<std::size_t>(temp.pack), temp.window).length;
      program_->temp_bytes.push_back(elements * size_of(temp.element));
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
        bound.wait_lane = step.lane;
        bound.wait_step = step.step;
        break;
      case Op::kRecv:
      case Op::kRelease:
        throw Error(ErrorCode::kInternal, "a plan with channels was bound in a cluster of one process");
    }
    return bound;
  }

  void bind_call(const Step& step, BoundStep& bound) {
    const Operand& result = plan_.destinations(step).front();
    if (buffer(result).role != Role::kTemp || step.divisor != 1) {
      throw Error(ErrorCode::kInternal, "a call was bound whose result is divided or not a temporary");
    }
    bound.pack = static_cast<std::uint32_t>(buffer(result).pack);
    bound.result_slot = temp_slots_[static_cast<std::size_t>(result.buffer)];
    program_->temp_bytes[bound.result_slot - program_->tensor_slots] = 0;
  }

  void bind_arithmetic(const Step& step, BoundStep& bound) {
    const std::span<const Operand> sources = plan_.sources(step);
    const std::span<const Operand> destinations = plan_.destinations(step);
    const auto pack = static_cast<std::size_t>(buffer(sources.front()).pack);
    check_one_type(sources);
    check_one_type(destinations);
    bound.destinations = step.num_destinations;
    bound.form.input = buffer(sources.front()).element;
    bound.form.output = buffer(destinations.front()).element;
    bound.form.accumulator = step.op == Op::kCopy ? bound.form.input : step.accumulator;
    bound.form.divisor = step.divisor;
    bound.form.destinations = step.num_destinations;
    first_merge_.push_back(program_->merges.size());
    for (const Operand& source : sources) program_->merges.push_back(source.merges);

    const plan::Extent range = extent(pack, sources.front().chunks);
    bound.form.streaming = wants_streaming(step, range.length * table(pack).outer);
    if (table(pack).outer > 1) {
      bind_rows(step, pack, range, bound);
    } else {
      bind_pieces(step, pack, range, bound);
    }
  }

  // Kernels load one type and store one.
  void check_one_type(std::span<const Operand> operands) const {
    for (const Operand& operand : operands) {
      if (buffer(operand).element == buffer(operands.front()).element) continue;
      throw Error(ErrorCode::kInternal,
                  "a step was bound that mixes types among its sources or destinations");
    }
  }

  // Stores may bypass the caches only where no destination is read by the same step.
  bool wants_streaming(const Step& step, std::size_t elements) const {
    std::size_t bytes = 0;
    for (const Operand& destination : plan_.destinations(step)) {
      for (const Operand& source : plan_.sources(step)) {
        if (source.buffer == destination.buffer) return false;
      }
      bytes += elements * size_of(buffer(destination).element);
    }
    return engine_.prefers_streaming(bytes);
  }

  // The tensor (or temporary) behind an operand, and where in it element `element` of the pack lies; `member`
  // is the tensor of the pack that contains it and begins at `member_begin`.
  PointerSource locate(const Operand& operand, const PackMember& member, std::size_t member_begin,
                       std::size_t element) const {
    const Buffer& b = buffer(operand);
    PointerSource source;
    switch (b.role) {
      case Role::kInput:
      case Role::kInOut:
        source.slot = member.first_input + static_cast<std::uint32_t>(b.index);
        break;
      case Role::kOutput:
        source.slot = member.first_output + static_cast<std::uint32_t>(b.index);
        break;
      default:
        source.slot = temp_slots_[static_cast<std::size_t>(operand.buffer)];
        break;
    }
    source.byte_offset = (element - memory_begin(b, member_begin)) * size_of(b.element);
    return source;
  }

  std::uint32_t add_pointers(const Step& step, const PackMember& member, std::size_t member_begin,
                             std::size_t element) {
    const auto first = static_cast<std::uint32_t>(program_->pointers.size());
    for (const Operand& operand : plan_.destinations(step)) {
      program_->pointers.push_back(locate(operand, member, member_begin, element));
    }
    for (const Operand& operand : plan_.sources(step)) {
      program_->pointers.push_back(locate(operand, member, member_begin, element));
    }
    return first;
  }

  std::size_t traffic_per_element(const BoundStep& bound, const Step& step) const {
    return size_of(bound.form.output) * step.num_destinations + size_of(bound.form.input) * step.num_sources;
  }

  std::size_t segment_elements(const BoundStep& bound, const Step& step) const {
    const std::size_t elements = engine_.segment_bytes() / traffic_per_element(bound, step);
    return std::max(kSegmentGrain, elements / kSegmentGrain * kSegmentGrain);
  }

  // Cuts the range at tensor borders into pieces and fills segments with them.
  void bind_pieces(const Step& step, std::size_t pack, plan::Extent range, BoundStep& bound) {
    const std::size_t capacity = segment_elements(bound, step);
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

  // A concatenation along an inner axis: this step's replica fills a column of the result.
  void bind_rows(const Step& step, std::size_t pack, plan::Extent range, BoundStep& bound) {
    bound.by_rows = true;
    bound.first_segment = static_cast<std::uint32_t>(program_->row_copies.size());
    if (range.length == 0) return;
    const PackTable& t = table(pack);
    RowCopy rows;
    rows.first_pointer = add_pointers(step, t.members.front(), 0, range.offset);
    rows.elements = range.length;
    rows.destination_stride = t.elements() * size_of(bound.form.output);
    rows.source_stride = range.length * size_of(bound.form.input);
    const std::size_t rows_per_segment =
        std::max<std::size_t>(1, segment_elements(bound, step) / range.length);
    for (rows.first_row = 0; rows.first_row < t.outer; rows.first_row += rows.rows) {
      rows.rows = std::min(rows_per_segment, t.outer - rows.first_row);
      program_->row_copies.push_back(rows);
    }
    bound.form.destinations = 1;  // rows are copied destination by destination
    bound.num_segments = static_cast<std::uint32_t>(program_->row_copies.size()) - bound.first_segment;
  }

  // Last, as merges may have moved until now.
  void choose_kernels() {
    std::size_t arithmetic = 0;
    for (std::vector<BoundStep>& lane : program_->lanes) {
      for (BoundStep& step : lane) {
        if (step.op != Op::kCopy && step.op != Op::kReduce) continue;
        const std::size_t begin = first_merge_[arithmetic++];
        const std::size_t end =
            arithmetic < first_merge_.size() ? first_merge_[arithmetic] : program_->merges.size();
        step.form.merges = std::span(program_->merges).subspan(begin, end - begin);
        step.kernel = engine_.reduce_kernel(step.form);
      }
    }
  }

  const plan::Plan& plan_;
  std::span<const PackTable> tables_;
  engine::DeviceEngine& engine_;
  std::shared_ptr<Program> program_;
  std::vector<std::uint32_t> temp_slots_;  // by buffer
  std::vector<std::size_t> first_merge_;   // of each arithmetic step, in order
};

}  // namespace

std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, engine::DeviceEngine& engine) {
  return Binder(plan, tables, tensor_slots, engine).bind();
}

}  // namespace onesum::exec
