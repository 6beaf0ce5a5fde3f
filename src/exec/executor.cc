#include "exec/executor.h"

#include <atomic>

#include <onesum/error.h>

namespace onesum::exec {
namespace {

using Deadline = Executor::Deadline;

// One step under way, as the threads that share it see it.
struct StepRun {
  const Program& program;
  const BoundStep& step;
  std::byte* const* pointers;
  Deadline deadline;
  bool check_deadline;
  std::atomic<bool> expired =
      false;  // relaxed: a hint to stop early; the caller reads it after all have finished

  bool give_up() noexcept {
    if (!check_deadline) return false;
    if (expired.load(std::memory_order_relaxed)) return true;
    if (std::chrono::steady_clock::now() < deadline) return false;
    expired.store(true, std::memory_order_relaxed);
    return true;
  }
};

void run_pieces(void* context, std::uint32_t index) noexcept {
  auto& run = *static_cast<StepRun*>(context);
  if (run.give_up()) return;
  const Segment& segment = run.program.segments[run.step.first_segment + index];
  for (std::uint32_t p = 0; p < segment.num_pieces; ++p) {
    const Piece& piece = run.program.pieces[segment.first_piece + p];
    std::byte* const* pointers = run.pointers + piece.first_pointer;
    run.step.kernel({&run.step.form, pointers, pointers + run.step.destinations, piece.first, piece.count});
  }
}

void run_rows(void* context, std::uint32_t index) noexcept {
  auto& run = *static_cast<StepRun*>(context);
  if (run.give_up()) return;
  const RowCopy& rows = run.program.row_copies[run.step.first_segment + index];
  std::byte* const* pointers = run.pointers + rows.first_pointer;
  for (std::size_t row = rows.first_row; row < rows.first_row + rows.rows; ++row) {
    const std::byte* source = pointers[run.step.destinations] + row * rows.source_stride;
    for (std::uint32_t d = 0; d < run.step.destinations; ++d) {
      std::byte* destination = pointers[d] + row * rows.destination_stride;
      run.step.kernel({&run.step.form, &destination, &source, 0, rows.elements});
    }
  }
}

[[noreturn]] void throw_expired() {
  throw Error(ErrorCode::kDeadlineExceeded,
              "the call did not finish within its timeout; results passed by the caller are incomplete");
}

void run_arithmetic(const Program& program, const BoundStep& step, std::byte* const* pointers,
                    Deadline deadline) {
  StepRun run{program, step, pointers, deadline, step.num_segments > 1};
  program.engine->run_segments(step.num_segments, step.by_rows ? run_rows : run_pieces, &run);
  if (run.expired.load(std::memory_order_relaxed)) throw_expired();
}

}  // namespace

void Executor::run(Instance& instance, Deadline deadline, FunctionCaller* caller) {
  const Program& program = instance.program();
  std::vector<std::int32_t>& done = instance.done_;
  for (std::int32_t& steps : done) steps = 0;
  // Lanes take turns. A step that has to wait leaves the turn to the next lane; a verified plan always has a
  // lane that can go on.
  for (std::size_t unfinished = 1; unfinished > 0;) {
    unfinished = 0;
    for (std::size_t l = 0; l < program.lanes.size(); ++l) {
      const std::vector<BoundStep>& lane = program.lanes[l];
      for (; done[l] < static_cast<std::int32_t>(lane.size()); ++done[l]) {
        const BoundStep& step = lane[static_cast<std::size_t>(done[l])];
        if (step.op == plan::Op::kWait) {
          if (done[static_cast<std::size_t>(step.wait_lane)] <= step.wait_step) break;
        } else if (step.op == plan::Op::kCall) {
          instance.bases_[step.result_slot] = caller->call(step.pack);
          instance.resolve();
          if (std::chrono::steady_clock::now() >= deadline) throw_expired();
        } else if (step.num_segments > 0) {
          run_arithmetic(program, step, instance.pointers_.data(), deadline);
        }
      }
      unfinished += done[l] < static_cast<std::int32_t>(lane.size()) ? 1 : 0;
    }
  }
}

}  // namespace onesum::exec
