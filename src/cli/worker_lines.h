// What workers write, line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onesum::cli {

enum class Stream : std::uint8_t { kOut, kErr };
enum class LineStyle : std::uint8_t { kPrefixed, kPlain, kJson };

// A line of a worker, given without its end, as it is printed, with its end:
//   [2] text
//   text
//   {"worker":2,"stream":"stdout","line":"text"}
std::string styled_line(LineStyle style, std::size_t rank, Stream stream, std::string_view line);

// The lines of one stream of one worker. A line is held back until its end has come, but for lines of more
// than kLongest bytes, which are cut.
class WorkerLines {
 public:
  static constexpr std::size_t kLongest = std::size_t{16} << 20;

  WorkerLines(LineStyle style, std::size_t rank, Stream stream) noexcept
      : style_(style), rank_(rank), stream_(stream) {}

  // The lines that these bytes complete, as they are printed; mostly one, often none.
  std::string add(std::string_view bytes);
  // The last line, if it has no end.
  std::string finish();

 private:
  LineStyle style_;
  std::size_t rank_;
  Stream stream_;
  std::string begun_;  // of a line without its end
};

}  // namespace onesum::cli
