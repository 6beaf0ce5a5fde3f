// How soon workers of one machine can know that all others have come: each writes a cache line of memory that
// all share, and reads the lines of the others. No all-reduce can do with less, so this is part of the bound
// of one between processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cli/bench_lockstep.h"

namespace onesum::cli {

class Meeting {
 public:
  // Null where the workers have no memory in common, as on several machines. All workers call it.
  static std::unique_ptr<Meeting> make(Lockstep& lockstep);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // Returns when all have called it as often. Throws deadline_exceeded naming who does not come.
  void meet();

 private:
  struct alignas(64) Line {
    // Release by its worker, acquire by the others: only the number counts, but a meeting orders what was
    // done before it.
    std::atomic<std::uint64_t> meetings{0};
  };

  Meeting(void* memory, std::size_t rank, std::size_t size);
  void refuse_to_wait(std::size_t rank) const;

  Line* lines_;
  std::size_t rank_;
  std::size_t size_;
  int most_spins_;
};

}  // namespace onesum::cli
