// An address that people write: "node7:29500", "10.0.0.7:29500", "[fe80::1%eth0]:29500".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onesum {

// A host is a name, an IPv4 address or an IPv6 address, without brackets; nothing is looked up. Port 0 names
// no address.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

inline constexpr std::string_view kHostPortExpected =
    "HOST:PORT, an IPv6 address in brackets, the port from 1 to 65535";

// nullopt for anything else: a missing or bad port, characters no host has, an IPv6 address without brackets.
std::optional<HostPort> parse_host_port(std::string_view text);

// Whether `text` may stand as the host of an address: letters, digits, '-', '_' and '.', or an IPv6 address.
bool is_host(std::string_view text) noexcept;

// Reads back to itself.
std::string to_string(const HostPort& address);

}  // namespace onesum
