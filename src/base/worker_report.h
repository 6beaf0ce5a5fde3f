// What a worker tells the launcher that started it: the totals that `onesum run` prints at its end.
//
//   ONESUM_REPORT = <descriptor> ":" <inode>
//
// names a SOCK_SEQPACKET socket that the worker inherited, and the socket's inode, so that another file which
// has got the number meanwhile is never written to. Each message is one JSON object and a line end:
//
//   {"calls":12,"bytes":4096,"waited_s":0.25,"most_waited_for":3,"waited_for_it_s":0.125}
//
// with the last two fields absent if nobody was waited for. A worker may send several, from several
// processes; they add up. A launcher that has gone, or a worker that sends none, is no error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onesum {

struct WorkerReport {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;                       // of the tensors that were passed to the calls
  double waited_seconds = 0;                     // for other workers, inside calls
  std::optional<unsigned> most_waited_for = {};  // rank; absent: nobody
  double waited_for_it_seconds = 0;
  friend bool operator==(const WorkerReport&, const WorkerReport&) = default;
};

struct ReportTarget {
  int fd = -1;
  std::uint64_t inode = 0;
  friend bool operator==(const ReportTarget&, const ReportTarget&) = default;
};

// The value of ONESUM_REPORT; nullopt for anything else.
std::optional<ReportTarget> parse_report_target(std::string_view text) noexcept;
std::string to_string(const ReportTarget& target);

// A message, with its line end.
std::string to_line(const WorkerReport& report);

// Sends a message without waiting and without a signal. Whether it was sent.
bool send_report(const ReportTarget& target, const WorkerReport& report) noexcept;

}  // namespace onesum
