// A table for people, printed row by row as the rows are made.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onesum::cli {

struct Column {
  std::string_view title;
  std::size_t width = 0;  // at least; a wider cell pushes the rest of its row to the right
  bool left = false;      // aligned to the left
};

// The titles of the columns, or the cells of a row, as a line without its end.
std::string header_line(std::span<const Column> columns);
std::string row_line(std::span<const Column> columns, std::span<const std::string> cells);

// All rows at once, each column as wide as it must be.
std::string table_of(std::vector<Column> columns, std::span<const std::vector<std::string>> rows);

}  // namespace onesum::cli
