#include "cli/bench_compare.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <onesum/error.h>

#include "base/text.h"
#include "cli/output.h"

namespace onesum::cli {
namespace {

using Json = nlohmann::json;
using Key = std::tuple<std::string, std::string, std::size_t>;  // peer, case, bytes

struct Line {
  Key key;
  std::size_t world = 0;
  double microseconds = 0;
};

Line parse_line(const std::string& text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  const auto has = [&](const char* field, auto is_right) {
    return json.is_object() && json.contains(field) && is_right(json[field]);
  };
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const auto is_count = [](const Json& value) { return value.is_number_unsigned() && value > 0; };
  const auto is_time = [](const Json& value) { return value.is_number() && value > 0; };
  if (!has("peer", is_text) || !has("case", is_text) || !has("world", is_count) || !has("bytes", is_count) ||
      !has("us_median", is_time)) {
    throw Error(ErrorCode::kInvalidArgument,
                where + ": no JSON object with peer, case, world, bytes and us_median, such as " +
                    R"({"peer":"gloo","case":"shm","world":4,"bytes":1024,"us_median":31.5})");
  }
  return {{json["peer"], json["case"], json["bytes"]}, json["world"], json["us_median"]};
}

double median_of(std::vector<double>& values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

std::vector<PlotPoint> read_compared(const std::string& path, std::size_t world) {
  std::istringstream lines(read_file(path));
  std::map<Key, std::vector<double>> times;
  std::set<std::size_t> worlds;
  std::size_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    if (text.empty()) continue;
    const Line line = parse_line(text, fmt::format("{}:{}", path, number));
    worlds.insert(line.world);
    if (line.world == world) times[line.key].push_back(line.microseconds);
  }
  if (times.empty()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has no times of {} replicas{}", quoted(path), world,
                    worlds.empty() ? "" : fmt::format("; it has those of {}", fmt::join(worlds, ", "))));
  }
  std::vector<PlotPoint> points;
  for (auto& [key, values] : times) {
    const auto& [peer, name, bytes] = key;
    points.push_back({peer, name, bytes, median_of(values) * 1e-6});
  }
  return points;
}

}  // namespace onesum::cli
