#include "cluster/place.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/hash.h"
#include "base/text.h"

namespace onesum::cluster {
namespace {

constexpr std::string_view kUnix = "unix:";
// sun_path holds 108 bytes, the first of which says that the name is abstract.
constexpr std::size_t kLongestUnixName = 107;

[[noreturn]] void refuse(std::string_view text, std::string_view expected) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("address {}: expected {}", quoted(text), expected));
}

MeetingPlace unix_place(std::string_view name) {
  if (name.empty() || name.size() > kLongestUnixName) {
    refuse(name, fmt::format("1 to {} characters after unix:", kLongestUnixName));
  }
  return {.unix_name = std::string(name)};
}

MeetingPlace parse_tcp(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) refuse(text, "HOST:PORT");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    if (!host.ends_with(']') || host.size() < 3) refuse(text, "[IPv6 address]:PORT");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse(text, "an IPv6 address in brackets: [::1]:PORT");
  }
  if (host.find_first_of("[]") != std::string_view::npos)
    refuse(text, "brackets around an IPv6 address only");
  const auto port = parse_number(text.substr(colon + 1), 65535);
  if (!port || *port == 0) refuse(text, "a port from 1 to 65535 after the last colon");
  return {.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace

bool MeetingPlace::is_on_this_machine() const noexcept {
  if (is_unix() || host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string to_string(const MeetingPlace& place) {
  if (place.is_unix()) return std::string(kUnix) + place.unix_name;
  const bool is_v6 = place.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), place.host.empty() ? "*" : place.host,
                     place.port);
}

std::string to_string(const std::vector<MeetingPlace>& places) {
  std::string result;
  for (const MeetingPlace& place : places) {
    if (!result.empty()) result += ',';
    result += to_string(place);
  }
  return result;
}

std::vector<MeetingPlace> parse_places(std::string_view text) {
  if (text.starts_with(kUnix)) return {unix_place(text.substr(kUnix.size()))};
  std::vector<MeetingPlace> places;
  for (;;) {
    const std::size_t comma = text.find(',');
    places.push_back(parse_tcp(text.substr(0, comma)));
    if (comma == std::string_view::npos) return places;
    text.remove_prefix(comma + 1);
  }
}

MeetingPlace place_on_this_machine(std::string_view job) {
  std::string name = fmt::format("onesum/{}/{}", ::geteuid(), job);
  if (name.size() > kLongestUnixName || name.find('\0') != std::string::npos) {
    Hasher hasher;
    hasher.add(job);
    const Fingerprint fingerprint = hasher.finish();
    name = fmt::format("onesum/{}/#{:016x}{:016x}", ::geteuid(), fingerprint.high, fingerprint.low);
  }
  return {.unix_name = std::move(name)};
}

}  // namespace onesum::cluster
