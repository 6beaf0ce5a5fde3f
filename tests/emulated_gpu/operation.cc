#include "emulated_gpu/operation.h"

#include <algorithm>
#include <cstdio>

namespace onesum::emulated {

std::string hex(std::uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%zx", static_cast<std::size_t>(address));
  return text;
}

Range Range::of_rows(const void* address, std::size_t width, std::size_t pitch, std::size_t rows) {
  if (rows <= 1 || pitch == width) return of(address, width * rows);
  return {reinterpret_cast<std::uintptr_t>(address), width, pitch, rows};
}

bool Range::touches(std::uintptr_t from, std::uintptr_t to) const {
  if (is_empty() || from >= to || to <= begin || from >= end()) return false;
  if (rows == 1) return true;
  // The first row that ends behind `from` is the only one that can be the first to touch.
  const std::size_t skipped = from < begin + width ? 0 : (from - begin - width) / pitch + 1;
  return skipped < rows && begin + skipped * pitch < to;
}

bool Range::overlaps(const Range& other) const {
  if (is_empty() || other.is_empty() || end() <= other.begin || other.end() <= begin) return false;
  const Range& few = rows <= other.rows ? *this : other;
  const Range& many = rows <= other.rows ? other : *this;
  for (std::size_t row = 0; row < few.rows; ++row) {
    const std::uintptr_t from = few.begin + row * few.pitch;
    if (many.touches(from, from + few.width)) return true;
  }
  return false;
}

bool Range::covers(const Range& other) const {
  if (other.is_empty()) return true;
  if (rows == 1) return begin <= other.begin && other.end() <= end();
  return begin == other.begin && width == other.width && pitch == other.pitch && rows == other.rows;
}

void Range::write(Text& text) const {
  text.add("[0x%zx, 0x%zx)", static_cast<std::size_t>(begin), static_cast<std::size_t>(end()));
  if (rows > 1) text.add(" in %zu rows of %zu bytes, %zu apart", rows, width, pitch);
}

void Operation::write(Text& text) const {
  text.add("%s (operation %zu of stream %u, device %d, called from ", what.c_str(),
           static_cast<std::size_t>(position), static_cast<unsigned>(stream), device);
  where.write(text);
  text.add(")");
}

void Access::write(Text& text) const {
  operation->write(text);
  text.add(is_written ? " writes " : " reads ");
  range.write(text);
}

}  // namespace onesum::emulated
