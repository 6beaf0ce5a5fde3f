// The options of every subcommand, as they are typed and as --help shows them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}

namespace onesum::cli {

using Text = std::optional<std::string>;

// The options as they were typed.
struct Typed {
  Text spec, workers, machines, num_packs, numerics, half, constants;
  Text latency, bandwidth, inside_latency, inside_bandwidth, reduce_speed;
  Text devices, device_type, bytes, sizes, shapes, dtype, op, to, reduce_to, draw, file, case_name, budget,
      rounds, grace, transport, iterations, plot, compare;
  bool in_place = false;
  bool verify = false;
  bool explain = false;
  bool text = false;
  bool measure = false;
  bool cluster = false;
  bool simulate = false;
  bool json = false;
  bool bound = false;
  bool embedded = false;
  bool check = false;
  bool no_check = false;
  bool no_measure = false;
  bool huge_pages = false;
  bool no_prefix = false;
  bool keep_going = false;
  std::vector<std::string> program;  // what follows "--"
};

// Adds run, plan, info and bench; what is typed is written to `typed`, which outlives the parsing.
void add_subcommands(CLI::App& app, Typed& typed);

}  // namespace onesum::cli
