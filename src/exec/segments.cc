#include "exec/segments.h"

#include <algorithm>
#include <atomic>

namespace onesum::exec {
namespace {

// Segments between two looks at the clock.
constexpr std::uint32_t kSegmentsPerLook = 8;

// One step under way, as the threads that share it see it.
struct StepRun {
  const Program& program;
  const BoundStep& step;
  std::byte* const* pointers;
  std::chrono::steady_clock::time_point deadline;
  bool check_deadline;
  std::atomic<bool> expired =
      false;  // relaxed: a hint to stop early; the caller reads it after all have finished

  bool give_up(bool looks) noexcept {
    if (!check_deadline) return false;
    if (expired.load(std::memory_order_relaxed)) return true;
    if (!looks || std::chrono::steady_clock::now() < deadline) return false;
    expired.store(true, std::memory_order_relaxed);
    return true;
  }
};

void run_pieces_of(const Program& program, const BoundStep& step, std::byte* const* addresses,
                   std::uint32_t index) noexcept {
  const Segment& segment = program.segments[step.first_segment + index];
  for (std::uint32_t p = 0; p < segment.num_pieces; ++p) {
    const Piece& piece = program.pieces[segment.first_piece + p];
    std::byte* const* pointers = addresses + piece.first_pointer;
    step.kernel({&step.form, pointers, pointers + step.destinations, piece.first, piece.count});
  }
}

// A step of one segment, which nobody shares.
struct SmallRun {
  const Program& program;
  const BoundStep& step;
  std::byte* const* pointers;
};

void run_small(void* context, std::uint32_t index) noexcept {
  const auto& run = *static_cast<const SmallRun*>(context);
  run_pieces_of(run.program, run.step, run.pointers, index);
}

void run_pieces(void* context, std::uint32_t index) noexcept {
  auto& run = *static_cast<StepRun*>(context);
  if (run.give_up(index % kSegmentsPerLook == 0)) return;
  run_pieces_of(run.program, run.step, run.pointers, index);
}

// Rows may be long: the clock is looked at for each segment of them.
void run_rows(void* context, std::uint32_t index) noexcept {
  auto& run = *static_cast<StepRun*>(context);
  if (run.give_up(true)) return;
  const RowCopy& rows = run.program.row_copies[run.step.first_segment + index];
  std::byte* const* pointers = run.pointers + rows.first_pointer;
  const std::size_t* strides = run.program.strides.data() + rows.first_stride;
  const std::uint32_t source_number = run.step.destinations;
  for (std::size_t row = rows.first_row; row < rows.first_row + rows.rows; ++row) {
    const std::byte* source = pointers[source_number] + row * strides[source_number];
    for (std::uint32_t d = 0; d < run.step.destinations; ++d) {
      std::byte* destination = pointers[d] + row * strides[d];
      run.step.kernel({&run.step.form, &destination, &source, 0, rows.elements});
    }
  }
}

// A piece of a step that mixes types, block by block: sources of other types than the accumulator's are
// converted into memory that stays in the first-level cache, then the kernel reads them there.
class MixedPiece {
 public:
  MixedPiece(const StepRun& run, const Piece& piece) noexcept
      : step_(run.step),
        piece_(piece),
        pointers_(run.pointers + piece.first_pointer),
        widenings_(run.program.widenings.data() + run.step.first_widening),
        accumulator_bytes_(size_of(run.step.form.accumulator)),
        output_bytes_(size_of(run.step.form.output)) {}

  void run() noexcept {
    const std::size_t block = kScratchBytes / (step_.form.merges.size() * accumulator_bytes_);
    for (std::size_t done = 0; done < piece_.count; done += block) {
      run_block(piece_.first + done, std::min(block, piece_.count - done));
    }
  }

 private:
  static constexpr std::size_t kScratchBytes = std::size_t{16} << 10;

  void run_block(std::size_t first, std::size_t count) noexcept {
    const std::byte* sources[kMaxMixedOperands];
    std::byte* destinations[kMaxMixedOperands];
    std::byte* scratch = scratch_;
    for (std::size_t s = 0; s < step_.form.merges.size(); ++s) {
      const Widening& widening = widenings_[s];
      sources[s] = pointers_[step_.destinations + s] + first * widening.element_bytes;
      if (widening.kernel == nullptr) continue;
      widening.kernel({&widening.form, &scratch, &sources[s], 0, count});
      sources[s] = scratch;
      scratch += count * accumulator_bytes_;
    }
    for (std::uint32_t d = 0; d < step_.destinations; ++d) {
      destinations[d] = pointers_[d] + first * output_bytes_;
    }
    step_.kernel({&step_.form, destinations, sources, 0, count});
  }

  const BoundStep& step_;
  const Piece& piece_;
  std::byte* const* pointers_;
  const Widening* widenings_;
  std::size_t accumulator_bytes_;
  std::size_t output_bytes_;
  alignas(64) std::byte scratch_[kScratchBytes];
};

void run_mixed(void* context, std::uint32_t index) noexcept {
  auto& run = *static_cast<StepRun*>(context);
  if (run.give_up(index % kSegmentsPerLook == 0)) return;
  const Segment& segment = run.program.segments[run.step.first_segment + index];
  for (std::uint32_t p = 0; p < segment.num_pieces; ++p) {
    MixedPiece(run, run.program.pieces[segment.first_piece + p]).run();
  }
}

engine::SegmentTask task_of(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::kPieces:
      break;
    case SegmentKind::kMixed:
      return run_mixed;
    case SegmentKind::kRows:
      return run_rows;
  }
  return run_pieces;
}

// Pieces that are described to a queue at a time.
constexpr std::size_t kPiecesAtATime = 64;

void give_pieces(const Program& program, const BoundStep& step, std::byte* const* pointers,
                 engine::Queue& queue) {
  engine::QueuedReduce work{&step.form, {}, {}};
  if (step.kind == SegmentKind::kMixed) {
    work.is_wide = std::span(program.is_wide).subspan(step.first_widening, step.form.merges.size());
  }
  engine::QueuedPiece pieces[kPiecesAtATime];
  std::size_t count = 0;
  const auto give = [&] {
    work.pieces = std::span(pieces).first(count);
    if (count > 0) queue.reduce(work);
    count = 0;
  };
  for (std::uint32_t s = 0; s < step.num_segments; ++s) {
    const Segment& segment = program.segments[step.first_segment + s];
    for (std::uint32_t p = 0; p < segment.num_pieces; ++p) {
      const Piece& piece = program.pieces[segment.first_piece + p];
      pieces[count++] = {pointers + piece.first_pointer, piece.first, piece.count};
      if (count == kPiecesAtATime) give();
    }
  }
  give();
}

void give_rows(const Program& program, const BoundStep& step, std::byte* const* pointers,
               engine::Queue& queue) {
  const std::uint32_t source = step.destinations;
  for (std::uint32_t s = 0; s < step.num_segments; ++s) {
    const RowCopy& rows = program.row_copies[step.first_segment + s];
    std::byte* const* its = pointers + rows.first_pointer;
    const std::size_t* strides = program.strides.data() + rows.first_stride;
    for (std::uint32_t d = 0; d < step.destinations; ++d) {
      queue.copy_rows({its[d] + rows.first_row * strides[d], strides[d],
                       its[source] + rows.first_row * strides[source], strides[source],
                       rows.elements * size_of(step.form.input), rows.rows});
    }
  }
}

}  // namespace

void give_segments(const Program& program, const BoundStep& step, std::byte* const* pointers,
                   engine::Queue& queue) {
  if (step.kind == SegmentKind::kRows) {
    give_rows(program, step, pointers, queue);
  } else {
    give_pieces(program, step, pointers, queue);
  }
}

bool run_segments(const Program& program, const BoundStep& step, std::byte* const* pointers,
                  std::chrono::steady_clock::time_point deadline) {
  if (step.num_segments == 1 && step.kind == SegmentKind::kPieces) {
    SmallRun run{program, step, pointers};
    program.host->run_segments(1, run_small, &run);
    return true;
  }
  StepRun run{program, step, pointers, deadline, step.num_segments > 1};
  program.host->run_segments(step.num_segments, task_of(step.kind), &run);
  return !run.expired.load(std::memory_order_relaxed);
}

}  // namespace onesum::exec
