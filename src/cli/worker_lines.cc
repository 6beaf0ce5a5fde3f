#include "cli/worker_lines.h"

#include <utility>

#include "cli/json_object.h"

namespace onesum::cli {

std::string styled_line(LineStyle style, std::size_t rank, Stream stream, std::string_view line) {
  if (style == LineStyle::kJson) {
    JsonObject object;
    object.set("worker", rank).set("stream", stream == Stream::kOut ? "stdout" : "stderr").set("line", line);
    return object.line() + '\n';
  }
  std::string text;
  if (style == LineStyle::kPrefixed) text.append("[").append(std::to_string(rank)).append("] ");
  return text.append(line).append("\n");
}

std::string WorkerLines::add(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const bool is_whole = end != std::string_view::npos;
    begun_ += bytes.substr(0, end);
    if (is_whole || begun_.size() >= kLongest) {
      lines += styled_line(style_, rank_, stream_, begun_);
      begun_.clear();
    }
    bytes.remove_prefix(is_whole ? end + 1 : bytes.size());
  }
  return lines;
}

std::string WorkerLines::finish() {
  if (begun_.empty()) return {};
  return styled_line(style_, rank_, stream_, std::exchange(begun_, {}));
}

}  // namespace onesum::cli
