#include "base/worker_report.h"

#include <array>
#include <charconv>
#include <limits>

#include <sys/socket.h>
#include <sys/stat.h>

#include "base/text.h"

namespace onesum {
namespace {

// The shortest decimal form that reads back as the same number; JSON has no other finite one.
std::string decimal(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), error == std::errc{} ? end : text.data()};
}

bool is_still(const ReportTarget& target) noexcept {
  struct stat status{};
  return fstat(target.fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == target.inode;
}

}  // namespace

std::optional<ReportTarget> parse_report_target(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto fd = parse_number(text.substr(0, colon), std::numeric_limits<int>::max());
  const auto inode = parse_number(text.substr(colon + 1), std::numeric_limits<std::uint64_t>::max());
  if (!fd || !inode) return std::nullopt;
  return ReportTarget{static_cast<int>(*fd), *inode};
}

std::string to_string(const ReportTarget& target) {
  return std::to_string(target.fd) + ":" + std::to_string(target.inode);
}

std::string to_line(const WorkerReport& report) {
  std::string line = R"({"calls":)" + std::to_string(report.calls) + R"(,"bytes":)" +
                     std::to_string(report.bytes) + R"(,"waited_s":)" + decimal(report.waited_seconds);
  if (report.most_waited_for) {
    line += R"(,"most_waited_for":)" + std::to_string(*report.most_waited_for) + R"(,"waited_for_it_s":)" +
            decimal(report.waited_for_it_seconds);
  }
  return line + "}\n";
}

bool send_report(const ReportTarget& target, const WorkerReport& report) noexcept {
  try {
    if (!is_still(target)) return false;
    const std::string line = to_line(report);
    return send(target.fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(line.size());
  } catch (...) {  // no memory for the line
    return false;
  }
}

}  // namespace onesum
