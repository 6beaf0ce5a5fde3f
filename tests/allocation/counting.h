// Counts what all threads of this program allocate, by replacing the allocation functions.
#pragma once

#include <cstddef>

namespace onesum::testing {

struct Allocated {
  std::size_t calls = 0;
  std::size_t bytes = 0;
};

// Counting begins and ends; at most one at a time.
void start_counting() noexcept;
Allocated stop_counting() noexcept;

// Whether the functions are replaced: a sanitizer brings its own.
bool is_counting_possible() noexcept;

template <class Call>
Allocated allocated_by(const Call& call) {
  start_counting();
  call();
  return stop_counting();
}

}  // namespace onesum::testing
