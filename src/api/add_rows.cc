#include "api/add_rows.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <onesum/error.h>

namespace onesum::api {
namespace {

// Rows of less than this cost as much.
constexpr std::size_t kLeastRowBytes = 64;

// Pieces of rows begin at multiples of this many elements, so that two threads rarely share a cache line.
constexpr std::size_t kPieceGrain = 64;

// What a thread claims: a run of rows, of each of which it adds `elements` elements from `first_element` on.
struct Segment {
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t first_element = 0;
  std::size_t elements = 0;
};

class Adder {
 public:
  Adder(const RowSums& sums, engine::ThreadedEngine& engine, Clock::time_point deadline)
      : sums_(sums),
        engine_(engine),
        deadline_(deadline),
        result_bytes_(sums.row_elements * size_of(sums.form.output)) {
    find_sources();
    choose_kernels();
    cut_segments();
  }

  void run() {
    engine_.run_segments(
        static_cast<std::uint32_t>(segments_.size()),
        [](void* self, std::uint32_t segment) noexcept {
          static_cast<Adder*>(self)->run_segment(static_cast<Adder*>(self)->segments_[segment]);
        },
        this);
    if (!is_late_.load(std::memory_order_relaxed)) return;
    throw Error(
        ErrorCode::kDeadlineExceeded,
        "the call's timeout passed while duplicate rows were merged; results passed by the caller are "
        "incomplete");
  }

 private:
  std::size_t rows() const noexcept { return sums_.groups.rows.size(); }
  std::size_t occurrences(std::size_t row) const noexcept {
    return sums_.groups.first[row + 1] - sums_.groups.first[row];
  }
  std::span<const std::uint8_t> merges(std::size_t row) const noexcept {
    return std::span(sums_.groups.merges).subspan(sums_.groups.first[row], occurrences(row));
  }

  void find_sources() {
    const std::size_t row_bytes = sums_.row_elements * size_of(sums_.form.input);
    sources_.reserve(sums_.groups.positions.size());
    for (const std::size_t position : sums_.groups.positions) {
      sources_.push_back(sums_.values + position * row_bytes);
    }
  }

  // Neighbours are often alike.
  void choose_kernels() {
    kernels_.reserve(rows());
    for (std::size_t row = 0; row < rows(); ++row) {
      engine::ReduceForm form = sums_.form;
      form.merges = merges(row);
      const bool is_alike = row > 0 && std::ranges::equal(form.merges, merges(row - 1));
      kernels_.push_back(is_alike ? kernels_.back() : engine_.reduce_kernel(form));
    }
  }

  // Bytes that a row reads and writes.
  std::size_t traffic(std::size_t row) const noexcept {
    const std::size_t row_bytes = sums_.row_elements * size_of(sums_.form.input);
    return occurrences(row) * std::max(kLeastRowBytes, row_bytes) +
           sums_.destinations.size() * std::max(kLeastRowBytes, result_bytes_);
  }

  void cut_segments() {
    const std::size_t capacity = engine_.segment_bytes();
    std::size_t room = 0;  // left in the last segment
    for (std::size_t row = 0; row < rows(); ++row) {
      const std::size_t bytes = traffic(row);
      if (bytes > capacity) {
        cut_row(row, bytes / capacity + 1);
        room = 0;
      } else if (room < bytes) {
        segments_.push_back({row, 1, 0, sums_.row_elements});
        room = capacity - bytes;
      } else {
        ++segments_.back().rows;
        room -= bytes;
      }
    }
  }

  void cut_row(std::size_t row, std::size_t pieces) {
    const std::size_t grains = sums_.row_elements / pieces / kPieceGrain;
    const std::size_t length = std::max<std::size_t>(1, grains) * kPieceGrain;
    for (std::size_t first = 0; first < sums_.row_elements; first += length) {
      segments_.push_back({row, 1, first, std::min(length, sums_.row_elements - first)});
    }
  }

  bool gives_up() noexcept {
    if (is_late_.load(std::memory_order_relaxed)) return true;
    if (now() < deadline_) return false;
    is_late_.store(true, std::memory_order_relaxed);
    return true;
  }

  void run_segment(const Segment& segment) noexcept {
    if (gives_up()) return;
    for (std::size_t row = segment.first_row; row < segment.first_row + segment.rows; ++row) {
      run_row(row, segment);
    }
  }

  // Beyond a number of destinations the sum is formed again: it has the same bits.
  void run_row(std::size_t row, const Segment& segment) noexcept {
    std::array<std::byte*, 16> to;
    engine::ReduceForm form = sums_.form;
    form.merges = merges(row);
    for (std::size_t d = 0; d < sums_.destinations.size(); d += form.destinations) {
      form.destinations = std::min(to.size(), sums_.destinations.size() - d);
      for (std::size_t i = 0; i < form.destinations; ++i) {
        to[i] = sums_.destinations[d + i] + row * result_bytes_;
      }
      kernels_[row]({&form, to.data(), sources_.data() + sums_.groups.first[row], segment.first_element,
                     segment.elements});
    }
  }

  const RowSums& sums_;
  engine::ThreadedEngine& engine_;
  Clock::time_point deadline_;
  std::size_t result_bytes_;               // of a row
  std::vector<const std::byte*> sources_;  // of each occurrence
  std::vector<engine::Kernel> kernels_;    // of each row
  std::vector<Segment> segments_;
  std::atomic<bool> is_late_ = false;  // relaxed: a hint to stop; read for good when all segments are done
};

}  // namespace

void add_rows(const RowSums& sums, engine::ThreadedEngine& engine, Clock::time_point deadline) {
  if (sums.row_elements > 0 && !sums.groups.rows.empty()) Adder(sums, engine, deadline).run();
}

}  // namespace onesum::api
