// The command line, read.
#pragma once

#include <string>
#include <variant>

#include "cli/bench_command.h"
#include "cli/info_command.h"
#include "cli/plan_command.h"
#include "cli/run_command.h"

namespace onesum::cli {

struct TextOptions {
  std::string text;  // what --help or --version asks for
};

using Command = std::variant<TextOptions, PlanOptions, InfoOptions, BenchOptions, RunOptions>;

// Throws UsageError naming what is wrong and, where something was misspelt, what is nearest to it.
Command parse_command_line(int argc, const char* const* argv);

}  // namespace onesum::cli
