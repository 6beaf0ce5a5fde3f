// Amounts, and many things that are alike, as people read them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onesum {

// "4 B", "8 MiB", "97.5 MiB".
std::string format_bytes(std::size_t bytes);

// "85.2 ns", "1.24 µs", "145 ms": three digits.
std::string format_time(double seconds);

// "1.00", "3.14", "12.5", "420": three digits.
std::string format_number(double value);

// "1 tensor", "161 tensors"; `noun` has a plural in s.
std::string counted(std::size_t count, std::string_view noun);

// "7", or "3 to 7" where they differ.
std::string format_range(std::size_t least, std::size_t most);

// Ascending numbers of things: "pack 3", "packs 0 to 114", "packs 0, 2 and 5 to 9"; of more than four runs
// only the first three and the last: "packs 0, 2, 4, … 198".
std::string numbered(std::string_view noun, std::span<const std::size_t> numbers);

// Things of which the same is said, in the order of the first of each.
struct Alike {
  std::string words;
  std::vector<std::size_t> numbers;  // ascending
};
std::vector<Alike> grouped(std::size_t count, const std::function<std::string(std::size_t)>& words_about);

}  // namespace onesum
