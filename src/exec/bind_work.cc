#include "exec/bind_work.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <onesum/error.h>

namespace onesum::exec {
namespace {

using plan::Buffer;
using plan::Operand;
using plan::PackMember;
using plan::PackTable;
using plan::Role;

// Segments begin at multiples of this many elements, so that two threads rarely share a cache line.
constexpr std::size_t kSegmentGrain = 64;

// A step that has no segment of the engine's size for every thread has smaller ones. Not too small, for
// handing one to another thread takes a few hundred nanoseconds; one for each thread, or two where these are
// not small; and not many, for their number decides whether a thread is woken.
constexpr std::size_t kSmallSegment = std::size_t{64} << 10;  // bytes of traffic
constexpr std::size_t kMostSmallSegments = 8;

// The merges of a step with one source.
constexpr std::uint8_t kOneSource[] = {0};

class WorkBinder {
 public:
  WorkBinder(Program& program, std::span<const PackTable> tables, const Scene& scene)
      : program_(program), host_(*program.host), tables_(tables), scene_(scene) {}

  void bind(const Work& work) {
    BoundStep bound;
    if (work.destinations.empty()) {  // all is where it belongs
      bind_sends(work, bound);
      program_.steps.push_back(bound);
      return;
    }
    bound.op = plan::Op::kReduce;  // a copy is one of a single source
    bound.unit = work.unit;
    bound.destinations = static_cast<std::uint32_t>(work.destinations.size());
    bound.form = work.form;
    bound.form.destinations = work.destinations.size();
    bound.first_merge = static_cast<std::uint32_t>(program_.merges.size());
    bound.num_sources = static_cast<std::uint32_t>(work.sources.size());
    for (const View& source : work.sources) {
      program_.merges.push_back(work.sources.size() == 1 ? std::uint8_t{0} : source.operand->merges);
    }
    bind_sends(work, bound);
    if (!are_of_one_type(work.sources)) bind_widenings(work, bound);
    if (work.unit == kHost && bound.num_sends == 0) bound.form.streaming = wants_streaming(work);
    if (scene_.table(pack_of(work)).outer != 1) {
      bind_rows(work, bound);
    } else {
      bind_pieces(work, bound);
    }
    program_.steps.push_back(bound);
  }

 private:
  // Messages that nobody has to write are sent with those that have the same content; of common ones, one is
  // sent for all.
  void bind_sends(const Work& work, BoundStep& bound) {
    bound.first_send = static_cast<std::uint32_t>(program_.sends.size());
    for (const Operand& destination : scene_.plan.destinations(*work.step)) {
      if (scene_.buffer(destination).role != Role::kSlot) continue;
      const Posting& posting = scene_.posting(destination);
      const bool is_another_sent = engine::is_common(posting.place.box) && !posting.is_written;
      if (!is_another_sent && is_sent_by(work, destination)) {
        program_.sends.push_back(scene_.posting_number(destination));
      }
    }
    bound.num_sends = static_cast<std::uint32_t>(program_.sends.size()) - bound.first_send;
  }

  // All messages to other processes are written by the same unit, and so are all others.
  bool is_sent_by(const Work& work, const Operand& message) const {
    if (!work.sends) return false;
    if (program_.queued.empty()) return true;
    const auto is_alike = [&](const View& view) {
      return !view.staged && scene_.buffer(*view.operand).role == Role::kSlot &&
             scene_.owner_of(*view.operand) == scene_.owner_of(message);
    };
    return std::ranges::any_of(work.destinations, is_alike);
  }

  bool are_of_one_type(std::span<const View> views) const {
    return std::ranges::all_of(views, [&](const View& view) {
      return scene_.buffer(*view.operand).element == scene_.buffer(*views.front().operand).element;
    });
  }

  std::int32_t pack_of(const Work& work) const { return scene_.buffer(*work.sources.front().operand).pack; }

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
    bound.first_widening = static_cast<std::uint32_t>(program_.widenings.size());
    for (const View& source : work.sources) {
      const Element element = scene_.buffer(*source.operand).element;
      Widening widening;
      widening.form.input = element;
      widening.form.accumulator = widening.form.output = work.form.accumulator;
      widening.form.merges = kOneSource;
      widening.element_bytes = size_of(element);
      if (element != work.form.accumulator) widening.kernel = host_.reduce_kernel(widening.form);
      program_.widenings.push_back(widening);
    }
  }

  void bind_wide_sources(const Work& work, BoundStep& bound) {
    bound.first_widening = static_cast<std::uint32_t>(program_.is_wide.size());
    for (const View& source : work.sources) {
      const Element element = scene_.buffer(*source.operand).element;
      const bool is_wide = element == work.form.accumulator;
      if (!is_wide) bound.form.input = element;
      program_.is_wide.push_back(is_wide ? 1 : 0);
    }
    for (const View& source : work.sources) {
      const Element element = scene_.buffer(*source.operand).element;
      if (element == work.form.accumulator || element == bound.form.input) continue;
      throw Error(ErrorCode::kInternal, "a step was bound that mixes more than two types");
    }
  }

  // Stores may bypass the caches only where no destination is read by the same step, or soon as a message.
  // What counts is what they would push out of the caches: of results all that the call writes, whatever a
  // round has of it.
  bool wants_streaming(const Work& work) const {
    if (!are_of_one_type(work.sources)) return false;
    const std::size_t elements = work.range.length * scene_.table(pack_of(work)).outer;
    std::size_t bytes = 0;
    for (const View& destination : work.destinations) {
      const Buffer& written_to = scene_.buffer(*destination.operand);
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
    if (!view.staged) return scene_.layout.locate(*view.operand, member, member_begin, element);
    const std::size_t bytes = (element - work.range.offset) * size_of(scene_.buffer(*view.operand).element);
    return {scene_.staging_slot, *view.staged + bytes};
  }

  std::uint32_t add_pointers(const Work& work, const PackMember& member, std::size_t member_begin,
                             std::size_t element) {
    const auto first = static_cast<std::uint32_t>(program_.pointers.size());
    for (const std::vector<View>* views : {&work.destinations, &work.sources}) {
      for (const View& view : *views) {
        program_.pointers.push_back(locate(work, view, member, member_begin, element));
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
    if (!program_.peers.empty()) {
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
    bound.first_segment = static_cast<std::uint32_t>(program_.segments.size());
    std::size_t room = 0;  // elements left in the last segment
    std::size_t member_begin = 0;
    for (const PackMember& member : scene_.table(pack_of(work)).members) {
      const std::size_t begin = std::max(range.offset, member_begin);
      const std::size_t end = std::min(range.offset + range.length, member_begin + member.elements);
      if (begin < end) {
        const std::uint32_t pointers = add_pointers(work, member, member_begin, begin);
        for (std::size_t first = 0; first < end - begin;) {
          if (room == 0) {
            program_.segments.push_back({static_cast<std::uint32_t>(program_.pieces.size()), 0});
            room = capacity;
          }
          const std::size_t count = std::min(room, end - begin - first);
          program_.pieces.push_back({pointers, first, count});
          ++program_.segments.back().num_pieces;
          first += count;
          room -= count;
        }
      }
      member_begin += member.elements;
    }
    bound.num_segments = static_cast<std::uint32_t>(program_.segments.size()) - bound.first_segment;
  }

  // A concatenation along an inner axis: a chunk is a column of the result, and contiguous, row after row, in
  // what its replica brings and in messages.
  void bind_rows(const Work& work, BoundStep& bound) {
    const plan::Extent& range = work.range;
    if (work.sources.size() != 1 || (work.unit != kHost && !is_plain_copy(work.form))) {
      throw Error(ErrorCode::kInternal, "a concatenation by rows was bound that adds or converts");
    }
    bound.kind = SegmentKind::kRows;
    bound.first_segment = static_cast<std::uint32_t>(program_.row_copies.size());
    bound.form.destinations = 1;  // rows are copied destination by destination
    if (range.length == 0) return;
    const PackTable& t = scene_.table(pack_of(work));
    RowCopy rows;
    rows.first_pointer = add_pointers(work, t.members.front(), 0, range.offset);
    rows.first_stride = static_cast<std::uint32_t>(program_.strides.size());
    for (const std::vector<View>* views : {&work.destinations, &work.sources}) {
      for (const View& view : *views) {
        program_.strides.push_back(view.staged ? range.length * size_of(scene_.buffer(*view.operand).element)
                                               : scene_.layout.row_bytes(*view.operand));
      }
    }
    rows.elements = range.length;
    const std::size_t rows_per_segment =
        std::max<std::size_t>(1, segment_elements(work, range.length * t.outer) / range.length);
    for (rows.first_row = 0; rows.first_row < t.outer; rows.first_row += rows.rows) {
      rows.rows = std::min(rows_per_segment, t.outer - rows.first_row);
      program_.row_copies.push_back(rows);
    }
    bound.num_segments = static_cast<std::uint32_t>(program_.row_copies.size()) - bound.first_segment;
  }

  static bool is_plain_copy(const engine::ReduceForm& form) {
    return form.input == form.output && form.divisor == 1;
  }

  Program& program_;
  engine::ThreadedEngine& host_;
  std::span<const PackTable> tables_;
  const Scene& scene_;
};

}  // namespace

void bind_work(const Work& work, const Scene& scene, std::span<const PackTable> tables, Program& program) {
  WorkBinder(program, tables, scene).bind(work);
}

void choose_kernels(Program& program) {
  for (BoundStep& step : program.steps) {
    if (step.op != plan::Op::kReduce) continue;
    step.form.merges = std::span(program.merges).subspan(step.first_merge, step.num_sources);
    if (step.unit == kHost) {
      step.kernel = program.host->reduce_kernel(step.form);
    } else {
      program.queued[step.unit - 1u]->check_form(step.form);
    }
  }
}

}  // namespace onesum::exec
