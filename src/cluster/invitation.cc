#include "cluster/invitation.h"

#include <algorithm>

#include "base/hash.h"

namespace onesum::cluster {
namespace {

constexpr std::size_t kLongestSocketName = 100;  // sockaddr_un has 107 characters

bool is_printable(char c) noexcept { return c > 0x20 && c < 0x7f; }

struct Words {
  std::string operator()(const Nowhere&) const { return "this process"; }
  std::string operator()(const LocalSocket& socket) const {
    return "on this machine, abstract Unix socket " + socket.name;
  }
  std::string operator()(const HostPort& address) const { return to_string(address) + " (TCP)"; }
  std::string operator()(const AskPmix&) const { return "published through PMIx"; }
  std::string operator()(const AskPmi& pmi) const {
    return "published through PMI, file descriptor " + std::to_string(pmi.fd);
  }
};

std::string hexadecimal(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(number >> shift) & 15];
  return text;
}

}  // namespace

std::string describe(const Venue& place) { return std::visit(Words(), place); }

LocalSocket local_socket(unsigned uid, std::string_view job) {
  const std::string prefix = "onesum-" + std::to_string(uid) + "-";
  const bool is_fit = prefix.size() + job.size() <= kLongestSocketName && !job.empty() &&
                      std::ranges::all_of(job, is_printable);
  if (is_fit) return {prefix + std::string(job)};
  Hasher hasher;
  hasher.add(job);
  return {prefix + hexadecimal(hasher.finish().low)};
}

}  // namespace onesum::cluster
