#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <onesum/error.h>

#include "base/text.h"
#include "engine/ucx/worker.h"

namespace onesum::engine::ucx {
namespace {

// The bytes of an address of either family, in network order; nothing if the text is none.
std::optional<std::string> address_bytes(const std::string& text) {
  in6_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) == 1)
    return std::string(reinterpret_cast<char*>(&address), 4);
  if (inet_pton(AF_INET6, text.c_str(), &address) == 1)
    return std::string(reinterpret_cast<char*>(&address), 16);
  return std::nullopt;
}

std::string_view address_bytes(const sockaddr& address) noexcept {
  if (address.sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address);
    return {reinterpret_cast<const char*>(&in->sin_addr), 4};
  }
  if (address.sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&address);
    return {reinterpret_cast<const char*>(&in->sin6_addr), 16};
  }
  return {};
}

std::string interface_with(const std::string& text, std::string_view address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw Error(ErrorCode::kUnavailable,
                "cannot list the network interfaces of this machine: " + std::string(std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && address_bytes(*entry->ifa_addr) == address) return entry->ifa_name;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "network device " + quoted(text) + ": no interface of this machine has this address");
}

}  // namespace

std::string device_names(const std::string& devices) {
  std::string names;
  for (std::size_t begin = 0; begin <= devices.size();) {
    const std::size_t end = std::min(devices.find(',', begin), devices.size());
    const std::string entry = devices.substr(begin, end - begin);
    const auto address = address_bytes(entry);
    if (begin != 0) names += ',';
    names += address ? interface_with(entry, *address) : entry;
    begin = end + 1;
  }
  return names;
}

}  // namespace onesum::engine::ucx
