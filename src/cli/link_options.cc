#include "cli/link_options.h"

#include <fmt/format.h>

#include "api/machine_constants.h"
#include "base/amounts.h"

namespace onesum::cli {
namespace {

std::string rate_text(double seconds_per_byte) {
  return seconds_per_byte > 0 ? format_number(1e-9 / seconds_per_byte) + " GB/s" : "no limit";
}

std::string link_text(const plan::LinkConstants& link) {
  return fmt::format("{}, {}", format_time(link.latency), rate_text(link.seconds_per_byte));
}

}  // namespace

plan::CostConstants use_links(const LinkOptions& options) {
  const bool has_file = options.constants_file.has_value();
  api::MachineConstants constants =
      has_file ? api::MachineConstants{api::read_constants(*options.constants_file), *options.constants_file}
               : api::constants_in_force();
  plan::CostConstants& values = constants.values;
  if (options.latency) values.across.latency = *options.latency;
  if (options.bandwidth) values.across.seconds_per_byte = 1 / *options.bandwidth;
  if (options.inside_latency) values.inside.latency = *options.inside_latency;
  if (options.inside_bandwidth) values.inside.seconds_per_byte = 1 / *options.inside_bandwidth;
  if (options.reduce_speed) values.gamma = 1 / *options.reduce_speed;
  api::use_constants(constants);
  return values;
}

std::string to_text(const plan::CostConstants& constants) {
  return fmt::format("links across workers: {}; inside: {}; memory traffic: {}; {} a step",
                     link_text(constants.across), link_text(constants.inside), rate_text(constants.gamma),
                     format_time(constants.step));
}

}  // namespace onesum::cli
