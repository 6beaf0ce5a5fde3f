#include "cli/table.h"

#include <algorithm>

namespace onesum::cli {
namespace {

constexpr std::string_view kGap = "  ";

// Characters that a terminal shows: bytes that do not continue a UTF-8 sequence.
std::size_t shown_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void append_cell(std::string& line, const Column& column, std::string_view cell) {
  const std::size_t shown = shown_width(cell);
  const std::string padding(column.width > shown ? column.width - shown : 0, ' ');
  if (!line.empty()) line += kGap;
  if (!column.left) line += padding;
  line += cell;
  if (column.left) line += padding;
}

void trim_right(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::string header_line(std::span<const Column> columns) {
  std::string line;
  for (const Column& column : columns) append_cell(line, column, column.title);
  trim_right(line);
  return line;
}

std::string row_line(std::span<const Column> columns, std::span<const std::string> cells) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i)
    append_cell(line, columns[i], i < cells.size() ? cells[i] : "");
  trim_right(line);
  return line;
}

std::string table_of(std::vector<Column> columns, std::span<const std::vector<std::string>> rows) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].width = std::max(columns[i].width, shown_width(columns[i].title));
    for (const auto& row : rows) columns[i].width = std::max(columns[i].width, shown_width(row[i]));
  }
  std::string text = header_line(columns) + '\n';
  for (const auto& row : rows) text += row_line(columns, row) + '\n';
  return text;
}

}  // namespace onesum::cli
