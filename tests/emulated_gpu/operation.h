// What is enqueued on streams, as the race detector and messages see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "emulated_gpu/clock.h"
#include "emulated_gpu/place.h"
#include "emulated_gpu/text.h"

namespace onesum::emulated {

// Rows of bytes, `pitch` apart.
struct Range {
  std::uintptr_t begin = 0;
  std::size_t width = 0;
  std::size_t pitch = 0;
  std::size_t rows = 1;

  static Range of(const void* address, std::size_t bytes) {
    return {reinterpret_cast<std::uintptr_t>(address), bytes, bytes, 1};
  }
  static Range of_rows(const void* address, std::size_t width, std::size_t pitch, std::size_t rows);

  bool is_empty() const { return width == 0 || rows == 0; }
  std::uintptr_t end() const { return is_empty() ? begin : begin + pitch * (rows - 1) + width; }
  bool touches(std::uintptr_t from, std::uintptr_t to) const;  // any byte of [from, to)
  bool overlaps(const Range& other) const;
  bool covers(const Range& other) const;  // surely; false may mean that it is not obvious
  void write(Text& text) const;
  std::string text() const { return text_of(*this); }
};

// Does not change once it is enqueued.
struct Operation {
  std::string what;  // "copy", "launch of add", …
  int device = 0;
  std::uint32_t stream = 0;
  std::uint64_t position = 0;  // in its stream, from 1
  Clock clock;                 // what comes before, and itself
  Place where;

  bool is_before(const Clock& later) const { return later.at(stream) >= position; }
  void write(Text& text) const;
  std::string text() const { return text_of(*this); }
};

struct Access {
  Range range;
  bool is_written = false;
  std::shared_ptr<const Operation> operation;

  void write(Text& text) const;
  std::string text() const { return text_of(*this); }
};

std::string hex(std::uintptr_t address);
inline std::string hex(const void* address) { return hex(reinterpret_cast<std::uintptr_t>(address)); }

}  // namespace onesum::emulated
