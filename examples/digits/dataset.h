// Handwritten digits, read from examples/data/digits.csv.gz.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

namespace digits {

inline constexpr std::size_t kPixels = 64;
inline constexpr std::size_t kClasses = 10;

struct Example {
  std::array<float, kPixels> pixels;  // 0 … 1
  std::size_t label;                  // 0 … 9
};

struct Dataset {
  std::vector<Example> training;
  std::vector<Example> held_out;  // never trained on
};

// A line is 64 pixels of 0 … 16 and the label, separated by commas.
inline Example parse_example(std::string_view line) {
  std::array<int, kPixels + 1> numbers{};
  const char* next = line.data();
  const char* const end = next + line.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) {
      if (next == end || *next != ',') throw std::runtime_error("expected 65 numbers a line");
      ++next;
    }
    const auto [after, error] = std::from_chars(next, end, numbers[i]);
    const int limit = i < kPixels ? 16 : 9;
    if (error != std::errc() || numbers[i] < 0 || numbers[i] > limit) throw std::runtime_error("bad number");
    next = after;
  }
  if (next != end) throw std::runtime_error("expected 65 numbers a line");

  Example example{};
  for (std::size_t i = 0; i < kPixels; ++i) example.pixels[i] = static_cast<float>(numbers[i]) / 16;
  example.label = static_cast<std::size_t>(numbers[kPixels]);
  return example;
}

// Every fifth line is held out: the fifth, the tenth, …
inline Dataset read_dataset(const std::string& path) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) throw std::runtime_error("cannot open " + path);
  Dataset dataset;
  std::array<char, 1024> buffer{};
  for (std::size_t row = 1; gzgets(file.get(), buffer.data(), buffer.size()) != nullptr; ++row) {
    std::string_view line = buffer.data();
    if (line.ends_with('\n')) line.remove_suffix(1);
    try {
      (row % 5 == 0 ? dataset.held_out : dataset.training).push_back(parse_example(line));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ", line " + std::to_string(row) + ": " + error.what());
    }
  }
  if (!gzeof(file.get()) || dataset.held_out.empty()) throw std::runtime_error("cannot read all of " + path);
  return dataset;
}

// The digit moved by one pixel to a side, or left where it is: training on these makes the most of few
// examples.
inline Example jittered(const Example& example, std::mt19937& random) {
  constexpr std::size_t kSide = 8;
  constexpr std::array<std::array<int, 2>, 5> kMoves = {{{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}}};
  const auto [right, down] = kMoves[random() % kMoves.size()];
  Example moved{.pixels = {}, .label = example.label};
  for (std::size_t y = 0; y < kSide; ++y) {
    for (std::size_t x = 0; x < kSide; ++x) {
      const std::size_t from_x = x - right;  // beyond a border it wraps to a large number
      const std::size_t from_y = y - down;
      if (from_x < kSide && from_y < kSide)
        moved.pixels[y * kSide + x] = example.pixels[from_y * kSide + from_x];
    }
  }
  return moved;
}

}  // namespace digits
