// What launchers and users write: environments (an entry a line), and the same text as TF_CONFIG, as a list
// of nodes and as an address. Nothing but onesum::Error comes out; what is read keeps its promises and prints
// back to itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <onesum/error.h>

#include "base/host_port.h"
#include "cluster/environment.h"
#include "cluster/node_list.h"

namespace {

using namespace onesum::cluster;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class F>
void expect_only_errors(F&& f) {
  try {
    f();
  } catch (const onesum::Error& error) {
    require(error.code() == onesum::ErrorCode::kInvalidArgument);
    require(std::string_view(error.what()).size() < 4000);
  }
}

void check(const Invitation& invitation) {
  require(invitation.rank >= 0 && invitation.rank < invitation.size);
  require(invitation.workers.size() == static_cast<std::size_t>(invitation.size));
  const int local_size = invitation.local_size.value_or(invitation.size);
  require(local_size >= 1 && local_size <= invitation.size && invitation.local_rank.value_or(0) < local_size);
  require((invitation.size == 1) == std::holds_alternative<Nowhere>(invitation.venue));
  require(!describe(invitation.venue).empty());
  if (const auto* socket = std::get_if<LocalSocket>(&invitation.venue))
    require(!socket->name.empty() && socket->name.size() <= 100);
  if (const auto* address = std::get_if<onesum::HostPort>(&invitation.venue))
    require(onesum::parse_host_port(to_string(*address)) == *address);
}

void read(const std::vector<std::string_view>& entries) {
  expect_only_errors([&] { check(read_invitation(entries, {1000, [] { return PmixJob{4, 1, 2}; }})); });
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void check_nodes(std::string_view text) {
  constexpr std::size_t kMost = 1000;
  const std::vector<std::string> nodes = expand_node_list(text, kMost);
  require(!nodes.empty() && nodes.size() <= kMost);
  for (const std::string& node : nodes) require(onesum::is_host(node));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read(lines_of(input));
  read({"TF_CONFIG=" + std::string(input)});
  expect_only_errors([&] { check_nodes(input); });
  expect_only_errors([&] { require(tasks_on_node(input, 3) >= 0); });
  if (const auto address = onesum::parse_host_port(input))
    require(onesum::parse_host_port(to_string(*address)) == address);
  return 0;
}
