// The command line of train_digits.
#pragma once

#include <charconv>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace digits {

struct Options {
  int devices = 4;
  int epochs = 40;
  std::string data;
  bool wants_help = false;
};

inline constexpr std::string_view kUsage = R"(usage: train_digits [--devices N] [--epochs N] [--data FILE]

Trains a classifier of handwritten digits, data-parallel on N CPU devices of each worker: of this process, or
of all that a launcher has started.

  --devices N   replicas of each worker (4; 1 to 64)
  --epochs N    times to go through the training data (40; 1 to 10000)
  --data FILE   digits.csv.gz, plain or compressed (examples/data/digits.csv.gz)
  --help        this text

Examples: train_digits --devices 2 --epochs 60
          onesum run -n 2 -- train_digits --devices 2
Exit code: 0 if at least 95 % of the held-out digits are recognised, 1 if not or if something fails, 2 for a wrong command line.
)";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline int parse_number(std::string_view name, std::string_view text, int largest) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > largest) {
    throw UsageError(std::string(name) + " takes a number from 1 to " + std::to_string(largest) + ", not \"" +
                     std::string(text) + "\"");
  }
  return number;
}

// Where the build left the data, else where a copied program may find it.
inline std::string default_data() {
  const std::filesystem::path file = "data/digits.csv.gz";
#ifdef ONESUM_EXAMPLES_DIR
  if (const auto path = ONESUM_EXAMPLES_DIR / file; std::filesystem::exists(path)) return path;
#endif
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {program, program / "../../examples", std::filesystem::path("examples")}) {
    if (std::filesystem::exists(folder / file)) return folder / file;
  }
  throw UsageError("digits.csv.gz was not found: name it with --data FILE");
}

inline Options parse_options(std::span<const char* const> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--help" || name == "-h") {
      options.wants_help = true;
      return options;
    }
    if (name != "--devices" && name != "--epochs" && name != "--data") {
      throw UsageError("unknown argument \"" + std::string(name) + "\"");
    }
    if (++i == arguments.size()) throw UsageError(std::string(name) + " needs a value");
    const std::string_view value = arguments[i];
    if (name == "--devices") options.devices = parse_number(name, value, 64);
    if (name == "--epochs") options.epochs = parse_number(name, value, 10000);
    if (name == "--data") options.data = value;
  }
  if (options.data.empty()) options.data = default_data();
  return options;
}

}  // namespace digits
