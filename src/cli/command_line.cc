#include "cli/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <onesum/error.h>
#include <onesum/version.h>

#include "base/combine.h"
#include "base/config.h"
#include "base/text.h"
#include "cli/quantities.h"
#include "cli/typed_options.h"
#include "cli/usage.h"

namespace onesum::cli {
namespace {

constexpr std::size_t kMaxDevices = 4096;
constexpr std::size_t kMaxWorkers = 65536;
constexpr std::size_t kMaxProcesses = 4096;
constexpr std::string_view kDefaultSizes = "4,1k,64k,1M,8M,64M";

// ---- what was typed, understood ----

DType dtype_of(const Typed& typed) {
  try {
    return parse_dtype(typed.dtype.value_or("float32"));
  } catch (const Error& error) {
    throw UsageError(std::string("--dtype: ") + error.what());
  }
}

constexpr std::string_view kMessages = "send_recv";
constexpr CollectiveKind kCollectives[] = {CollectiveKind::kBroadcast, CollectiveKind::kReduceScatter,
                                           CollectiveKind::kAllGather, CollectiveKind::kScatter,
                                           CollectiveKind::kAllToAll};

// What --op names: how an all-reduce combines, or another collective (of sums, where it reduces).
CollectiveKind collective_of(const Typed& typed) {
  const auto* const found = std::ranges::find_if(
      kCollectives, [&](CollectiveKind kind) { return typed.op && to_string(kind) == *typed.op; });
  return found == std::end(kCollectives) ? CollectiveKind::kReduce : *found;
}

ReduceOp op_of(const Typed& typed) {
  const std::string op = typed.op.value_or("sum");
  if (collective_of(typed) != CollectiveKind::kReduce || op == kMessages) return ReduceOp::kSum;
  if (const auto known = reduce_op_named(op)) return *known;
  std::string names;
  for (const CollectiveKind kind : kCollectives) names.append(", ").append(to_string(kind));
  throw UsageError("--op: " + quoted(op) + " is not one of " + reduce_op_names() + names + ", " +
                   std::string(kMessages));
}

std::size_t devices_of(const Typed& typed) {
  return typed.devices ? parse_count("--devices", *typed.devices, 1, kMaxDevices) : 2;
}

std::string device_type_of(const Typed& typed) {
  const std::string type = typed.device_type.value_or("cpu");
  if (type == "cpu") return "CPU";
  if (type == "gpu") return "GPU";
  throw UsageError("--device-type: " + quoted(type) + " is neither cpu nor gpu");
}

void refuse_both(const Text& one, const char* one_name, const Text& other, const char* other_name) {
  if (one && other) throw UsageError(std::string(one_name) + " and " + other_name + " exclude each other");
}

std::optional<AllReduceSpecs> spec_of(const Typed& typed) {
  if (!typed.spec) return std::nullopt;
  try {
    return AllReduceSpecs(*typed.spec);
  } catch (const Error& error) {
    throw UsageError(std::string("--spec: ") + error.what());
  }
}

std::optional<std::size_t> workers_of(const Typed& typed) {
  if (!typed.workers) return std::nullopt;
  return parse_count("--workers", *typed.workers, 1, kMaxWorkers);
}

std::optional<std::size_t> machines_of(const Typed& typed, const std::optional<std::size_t>& workers) {
  if (!typed.machines) return std::nullopt;
  if (!workers) throw UsageError("--machines needs --workers W");
  return parse_count("--machines", *typed.machines, 1, *workers);
}

Numerics numerics_of(const Typed& typed) {
  const std::string numerics = typed.numerics.value_or("canonical");
  if (numerics == "canonical") return Numerics::kCanonical;
  if (numerics == "fast") return Numerics::kFast;
  throw UsageError("--numerics: " + quoted(numerics) + " is neither canonical nor fast");
}

std::optional<api::Half> half_of(const Typed& typed) {
  if (!typed.half) return std::nullopt;
  if (*typed.half == "reduce_scatter") return api::Half::kReduceScatter;
  if (*typed.half == "all_gather") return api::Half::kAllGather;
  throw UsageError("--half: " + quoted(*typed.half) + " is neither reduce_scatter nor all_gather");
}

LinkOptions links_of(const Typed& typed) {
  const auto duration = [](const char* option, const Text& text) {
    return text ? std::optional(parse_duration(option, *text)) : std::nullopt;
  };
  const auto rate = [](const char* option, const Text& text) {
    return text ? std::optional(parse_rate(option, *text)) : std::nullopt;
  };
  LinkOptions links;
  links.constants_file = typed.constants;
  links.latency = duration("--latency", typed.latency);
  links.bandwidth = rate("--bandwidth", typed.bandwidth);
  links.inside_latency = duration("--inside-latency", typed.inside_latency);
  links.inside_bandwidth = rate("--inside-bandwidth", typed.inside_bandwidth);
  links.reduce_speed = rate("--reduce-speed", typed.reduce_speed);
  return links;
}

// Options that mean nothing without --spec, or beside others.
void refuse_idle_options(const Typed& typed) {
  const auto needs_spec = [&](bool is_given, const char* name) {
    if (is_given && !typed.spec) throw UsageError(std::string(name) + " needs --spec TEXT");
  };
  refuse_both(typed.spec, "--spec", typed.file, "--file");
  refuse_both(typed.workers, "--workers", typed.file, "--file");
  refuse_both(typed.spec, "--spec", typed.to, "--to");
  refuse_both(typed.spec, "--spec", typed.reduce_to, "--reduce-to");
  refuse_both(typed.half, "--half", typed.shapes, "--shapes");
  needs_spec(typed.machines.has_value(), "--machines");
  needs_spec(typed.num_packs.has_value(), "--num-packs");
  needs_spec(typed.numerics.has_value(), "--numerics");
  needs_spec(typed.half.has_value(), "--half");
  if (typed.simulate && typed.file) throw UsageError("--file and --simulate exclude each other");
  if (typed.explain && typed.file) throw UsageError("--file and --explain exclude each other");
  if (typed.text && !typed.explain)
    throw UsageError("--text needs --explain: without it the plan is printed");
  if (typed.explain && typed.half) throw UsageError("--half and --explain exclude each other");
  if (!typed.simulate) return;
  const std::pair<bool, const char*> useless[] = {
      {typed.verify, "--verify"}, {typed.draw.has_value(), "--draw"}, {typed.explain, "--explain"}};
  for (const auto& [is_given, name] : useless) {
    if (is_given) {
      throw UsageError(std::string("--simulate and ") + name +
                       " exclude each other: a plan that is simulated is not stored");
    }
  }
}

// What is about all-reduces.
void refuse_beside_collective(const PlanOptions& options, const Typed& typed) {
  if (options.collective == CollectiveKind::kReduce) return;
  const std::pair<bool, const char*> useless[] = {
      {typed.spec.has_value(), "--spec"},           {typed.in_place, "--in-place"},
      {typed.reduce_to.has_value(), "--reduce-to"}, {typed.shapes.has_value(), "--shapes"},
      {typed.file.has_value(), "--file"},           {typed.simulate, "--simulate"}};
  for (const auto& [is_given, name] : useless) {
    if (is_given) throw UsageError("--op " + *typed.op + " and " + name + " exclude each other");
  }
}

PlanOptions plan_options(const Typed& typed) {
  refuse_idle_options(typed);
  refuse_both(typed.bytes, "--bytes", typed.shapes, "--shapes");
  refuse_both(typed.file, "--file", typed.shapes, "--shapes");
  refuse_both(typed.file, "--file", typed.devices, "--devices");
  refuse_both(typed.file, "--file", typed.device_type, "--device-type");
  if (!typed.file && !typed.bytes && !typed.shapes) {
    throw UsageError("plan needs --bytes B, --shapes FILE or --file FILE");
  }
  PlanOptions options;
  options.file = typed.file;
  options.devices = devices_of(typed);
  options.device_type = device_type_of(typed);
  if (typed.bytes) options.bytes = parse_size("--bytes", *typed.bytes);
  options.shapes_file = typed.shapes;
  options.dtype = dtype_of(typed);
  options.op = op_of(typed);
  options.collective = collective_of(typed);
  if (typed.op == kMessages) {
    throw UsageError(
        "--op: send_recv is no plan of its own: a message is a broadcast to one device (--op "
        "broadcast --to DEVICE)");
  }
  refuse_beside_collective(options, typed);
  options.in_place = typed.in_place;
  options.to = typed.to;
  options.reduce_to = typed.reduce_to;
  options.verify = typed.verify;
  options.draw = typed.draw;
  options.json = typed.json;
  options.spec = spec_of(typed);
  options.workers = workers_of(typed);
  options.machines = machines_of(typed, options.workers);
  if (typed.num_packs)
    options.num_packs = static_cast<int>(parse_count("--num-packs", *typed.num_packs, 0, 65536));
  options.numerics = numerics_of(typed);
  options.half = half_of(typed);
  options.links = links_of(typed);
  options.simulate = typed.simulate;
  options.explain = typed.explain;
  options.text = typed.text;
  return options;
}

std::string transport_of(const std::string& name) {
  for (const TransportChoice choice :
       {TransportChoice::kAuto, TransportChoice::kShm, TransportChoice::kTcp, TransportChoice::kUcx}) {
    if (name == to_string(choice)) return name;
  }
  throw UsageError("--transport: " + quoted(name) + " is none of auto, shm, tcp and ucx");
}

Budget budget_of(const Typed& typed) {
  refuse_both(typed.iterations, "--iterations", typed.budget, "--budget");
  Budget budget;
  if (const char* seconds = std::getenv("BENCH_BUDGET"))
    budget.seconds = parse_seconds("BENCH_BUDGET", seconds);
  if (typed.budget) budget.seconds = parse_seconds("--budget", *typed.budget);
  if (typed.rounds) budget.rounds = parse_count("--rounds", *typed.rounds, 1, 1000);
  if (typed.iterations) {
    budget.samples = parse_count("--iterations", *typed.iterations, 1, 1000000);
    budget.rounds = std::min(budget.rounds, *budget.samples);
  }
  return budget;
}

// What belongs to memory of the host.
void refuse_on_gpus(const Typed& typed) {
  if (typed.huge_pages) throw UsageError("--huge-pages and --device-type gpu exclude each other");
  if (typed.bound) {
    throw UsageError("--bound and --device-type gpu exclude each other: there are no bounds on GPUs");
  }
}

BenchOptions bench_options(const Typed& typed) {
  refuse_both(typed.sizes, "--sizes", typed.shapes, "--shapes");
  if (typed.check && typed.no_check) throw UsageError("--check and --no-check exclude each other");
  if (typed.compare && !typed.plot) throw UsageError("--compare needs --plot FILE.svg");
  if (typed.no_measure && !typed.compare) throw UsageError("--no-measure needs --compare FILE.json");
  BenchOptions options;
  if (typed.devices) options.devices = devices_of(typed);
  if (typed.workers) {
    options.workers =
        parse_count("--workers", *typed.workers, 1, typed.embedded ? kMaxWorkers : kMaxProcesses);
  }
  options.embedded = typed.embedded;
  options.device_type = device_type_of(typed);
  if (options.device_type == "GPU") refuse_on_gpus(typed);
  if (typed.transport) options.transport = transport_of(*typed.transport);
  if (!typed.shapes)
    options.sizes = parse_size_list("--sizes", typed.sizes.value_or(std::string(kDefaultSizes)));
  options.shapes_file = typed.shapes;
  options.case_name = typed.case_name;
  options.dtype = dtype_of(typed);
  for (const std::size_t bytes : options.sizes) elements_in("--sizes", bytes, options.dtype);
  options.op = op_of(typed);
  options.collective = collective_of(typed);
  options.messages = typed.op == kMessages;
  if (typed.spec && (options.messages || options.collective != CollectiveKind::kReduce))
    throw UsageError("--op " + *typed.op + " and --spec exclude each other: specs are for all-reduces");
  options.spec = spec_of(typed);
  options.budget = budget_of(typed);
  options.check = !typed.no_check;
  options.huge_pages = typed.huge_pages;
  options.json = typed.json;
  options.bound = typed.bound;
  options.plot = typed.plot;
  options.compare = typed.compare;
  options.measure = !typed.no_measure;
  return options;
}

RunOptions run_options(const Typed& typed) {
  if (!typed.workers) throw UsageError("run needs --workers W: onesum run -n 4 -- ./train");
  if (typed.program.empty()) {
    throw UsageError(std::string("run needs a program after --: onesum run -n ") + *typed.workers +
                     " -- ./train");
  }
  if (typed.json && typed.no_prefix) throw UsageError("--json and --no-prefix exclude each other");
  RunOptions options;
  options.workers = parse_count("--workers", *typed.workers, 1, kMaxProcesses);
  options.program = typed.program;
  options.prefix = !typed.no_prefix;
  options.keep_going = typed.keep_going;
  if (typed.grace) options.grace_seconds = parse_seconds("--grace", *typed.grace);
  options.json = typed.json;
  return options;
}

// ---- what was not expected ----

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const auto likely = nearest(word, names);
  return likely ? "; did you mean " + std::string(*likely) + "?" : "";
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

void refuse_extras(const CLI::App& app, const CLI::App* command) {
  const std::vector<std::string> extras = command != nullptr ? command->remaining() : app.remaining();
  if (extras.empty()) return;
  const std::string& word = extras.front();
  const std::string help = command != nullptr ? "onesum " + command->get_name() + " --help" : "onesum --help";
  if (word.starts_with("-")) {
    throw UsageError(
        "unknown option " + quoted(word) +
        did_you_mean(word.substr(0, word.find('=')), option_names(command != nullptr ? *command : app)) +
        " (see " + help + ")");
  }
  if (command != nullptr && command->get_name() == "run") {
    throw UsageError("unexpected argument " + quoted(word) + "; the program follows --: onesum run -n 4 -- " +
                     word + " (see " + help + ")");
  }
  if (command != nullptr) throw UsageError("unexpected argument " + quoted(word) + " (see " + help + ")");
  throw UsageError("unknown command " + quoted(word) + did_you_mean(word, command_names(app)) + " (see " +
                   help + ")");
}

Command understood(const CLI::App& app, const Typed& typed) {
  const auto commands = app.get_subcommands();
  const CLI::App* command = commands.empty() ? nullptr : commands.front();
  refuse_extras(app, nullptr);
  if (command == nullptr) {
    throw UsageError("a command is needed: run, plan, info or bench (see onesum --help)");
  }
  refuse_extras(app, command);
  if (command->get_name() == "plan") return plan_options(typed);
  if (command->get_name() == "bench") return bench_options(typed);
  if (command->get_name() == "run") return run_options(typed);
  if (typed.cluster && typed.measure) throw UsageError("--cluster and --measure exclude each other");
  return InfoOptions{typed.json, typed.measure, typed.cluster};
}

// What follows "--" in `onesum run … -- PROGRAM …` is not for us. Returns how many words are.
int take_program(int argc, const char* const* argv, Typed& typed) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return argc;
  const auto* const end = argv + argc;
  const auto* const separator = std::find(argv, end, std::string_view("--"));
  if (separator != end) typed.program.assign(separator + 1, end);
  return static_cast<int>(separator - argv);
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  Typed typed;
  argc = take_program(argc, argv, typed);
  CLI::App app("One sum, on every device, with the same bits", "onesum");
  app.set_version_flag("--version", std::string("onesum ") + ONESUM_VERSION);
  app.footer(
      "Example:\n  onesum run -n 4 -- ./train\n  onesum plan --devices 4 --bytes 8M --verify\n"
      "  onesum bench -n 4 --sizes 8,1M");
  app.get_formatter()->column_width(28);
  app.require_subcommand(0, 1);
  add_subcommands(app, typed);
  app.allow_extras();
  for (CLI::App* command : app.get_subcommands({})) command->allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return TextOptions{app.help()};
  } catch (const CLI::CallForVersion& version) {
    return TextOptions{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  Command command = understood(app, typed);
  if (auto* bench = std::get_if<BenchOptions>(&command)) bench->arguments.assign(argv + 1, argv + argc);
  return command;
}

}  // namespace onesum::cli
