#include "cli/shapes_file.h"

#include <cstdint>
#include <limits>
#include <span>
#include <sstream>

#include <onesum/error.h>

#include "base/text.h"
#include "cli/output.h"

namespace onesum::cli {
namespace {

constexpr std::size_t kMaxElements = std::size_t{1} << 48;

std::int64_t parse_extent(const std::string& word) {
  const auto extent = parse_number(word, kMaxElements);
  if (!extent) throw Error(ErrorCode::kInvalidArgument, quoted(word) + " is no extent");
  return static_cast<std::int64_t>(*extent);
}

NamedShape parse_line(const std::string& line) {
  std::istringstream words(line);
  NamedShape named;
  words >> named.name;
  std::vector<std::int64_t> extents;
  for (std::string word; words >> word;) extents.push_back(parse_extent(word));
  named.shape = Shape(std::span<const std::int64_t>(extents));
  return named;
}

bool is_skipped(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string::npos || line[first] == '#';
}

}  // namespace

std::vector<NamedShape> read_shapes(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<NamedShape> shapes;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (is_skipped(line)) continue;
    try {
      shapes.push_back(parse_line(line));
    } catch (const Error& error) {
      throw Error(error.code(), path + ":" + std::to_string(number) + ": " + error.what() +
                                    "; expected a name and extents, such as: conv1.weight 64 3 7 7");
    }
  }
  if (shapes.empty()) throw Error(ErrorCode::kInvalidArgument, quoted(path) + " lists no tensors");
  return shapes;
}

}  // namespace onesum::cli
