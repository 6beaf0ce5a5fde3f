#include "base/host_port.h"

#include <algorithm>

#include "base/text.h"

namespace onesum {
namespace {

constexpr std::size_t kLongestHost = 253;  // of the domain name system

bool is_alphanumeric(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_of_name(char c) noexcept { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; }

// Roughly: hexadecimal digits, colons (two or more), dots of an IPv4 tail; then a zone.
bool is_ipv6(std::string_view text) noexcept {
  const std::size_t percent = std::min(text.find('%'), text.size());
  const std::string_view address = text.substr(0, percent);
  if (percent < text.size()) {
    const std::string_view zone = text.substr(percent + 1);
    if (zone.empty() || !std::ranges::all_of(zone, is_of_name)) return false;
  }
  const auto is_of_address = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
  };
  return std::ranges::count(address, ':') >= 2 && std::ranges::all_of(address, is_of_address);
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && (is_alphanumeric(text.front()) || text.front() == '_') &&
         std::ranges::all_of(text, is_of_name);
}

}  // namespace

bool is_host(std::string_view text) noexcept {
  return text.size() <= kLongestHost && (is_name(text) || is_ipv6(text));
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_number(text.substr(colon + 1), 65535);
  if (!port || *port == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  const bool has_colons = host.find(':') != std::string_view::npos;
  if (!is_host(host) || has_colons != has_brackets) return std::nullopt;
  return HostPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string to_string(const HostPort& address) {
  const bool is_ipv6_address = address.host.find(':') != std::string::npos;
  return (is_ipv6_address ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace onesum
