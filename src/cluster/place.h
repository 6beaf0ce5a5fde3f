// Where a worker listens, as a value and in text:
//   unix:NAME          the abstract Unix socket NAME of this machine (no file; gone with the process)
//   HOST:PORT          TCP; HOST is a name, an IPv4 address or an IPv6 address in brackets
// Several, separated by commas, are ways to the same worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onesum::cluster {

struct MeetingPlace {
  std::string unix_name = {};  // if not empty, the rest does not count
  std::string host = {};       // empty: every address of this machine
  std::uint16_t port = 0;      // 0: a free one

  bool is_unix() const noexcept { return !unix_name.empty(); }
  // Whether nobody outside this machine can reach it, as far as the text says: localhost, 127.x.x.x and ::1.
  bool is_on_this_machine() const noexcept;
  friend bool operator==(const MeetingPlace&, const MeetingPlace&) = default;
};

std::string to_string(const MeetingPlace& place);
std::string to_string(const std::vector<MeetingPlace>& places);

// The inverse; at least one. Throws invalid_argument quoting the text.
std::vector<MeetingPlace> parse_places(std::string_view text);

// The Unix socket at which the workers of `job` meet if all are this user's processes on this machine.
MeetingPlace place_on_this_machine(std::string_view job);

}  // namespace onesum::cluster
