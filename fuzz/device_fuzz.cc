// Device strings: two of them in the input, separated by a newline. Nothing but onesum::Error comes out, what
// parses prints back to the same value, and merging and completing keep their promises (docs/semantics.md,
// section 1).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <onesum/device.h>
#include <onesum/error.h>

namespace {

using onesum::Device;

void require(bool holds) {
  if (!holds) std::abort();
}

std::optional<Device> parsed(std::string_view text) {
  try {
    return Device(text);
  } catch (const onesum::Error& error) {
    require(error.code() == onesum::ErrorCode::kInvalidArgument);
    require(std::string_view(error.what()).size() < 2000);
    return std::nullopt;
  }
}

void check_value(const Device& device) {
  const Device again(device.to_string());
  require(again == device && again.hash() == device.hash() && again.to_string() == device.to_string());
  require(device.is_empty() == device.to_string().empty());
  if (device.type()) {
    require(std::none_of(device.type()->begin(), device.type()->end(),
                         [](char c) { return c >= 'a' && c <= 'z'; }));
  }
  require(!device.index() || device.type());
  const auto is_number = [](std::optional<int> field) { return !field || *field >= 0; };
  require(is_number(device.replica()) && is_number(device.task()) && is_number(device.index()));
}

void check_alone(const Device& device) {
  check_value(device);
  check_value(device.canonical());
  check_value(device.host());
  require(device.merged_over(Device()) == device && Device().merged_over(device) == device);
  require(device.canonical().is_complete() && device.canonical().canonical() == device.canonical());
  require(device.host().type() == "CPU" && device.host().index() == 0 &&
          device.host().task() == device.task());
}

template <class Field>
void check_field(const Field& own, const Field& given, const Field& merged) {
  require(merged == (own ? own : given));
}

void check_pair(const Device& device, const Device& defaults) {
  const Device merged = device.merged_over(defaults);
  check_value(merged);
  check_field(device.job(), defaults.job(), merged.job());
  check_field(device.replica(), defaults.replica(), merged.replica());
  check_field(device.task(), defaults.task(), merged.task());
  check_field(device.type(), defaults.type(), merged.type());
  check_field(device.index(), defaults.index(), merged.index());
  require(device.canonical(defaults) == merged.canonical());
  require((device == defaults) == (device.to_string() == defaults.to_string()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t newline = std::min(input.find('\n'), input.size());
  const auto device = parsed(input.substr(0, newline));
  const auto defaults = parsed(input.substr(std::min(newline + 1, input.size())));
  if (device) check_alone(*device);
  if (device && defaults) check_pair(*device, *defaults);
  return 0;
}
