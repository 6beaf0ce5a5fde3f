#include "cli/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <onesum/error.h>
#include <onesum/version.h>

#include "base/config.h"
#include "base/text.h"
#include "cli/quantities.h"
#include "cli/usage.h"

namespace onesum::cli {
namespace {

using Text = std::optional<std::string>;

constexpr std::size_t kMaxDevices = 4096;
constexpr std::size_t kMaxWorkers = 65536;
constexpr std::size_t kMaxProcesses = 4096;
constexpr std::string_view kDefaultSizes = "4,1k,64k,1M,8M,64M";

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
  bool huge_pages = false;
  bool no_prefix = false;
  bool keep_going = false;
  std::vector<std::string> program;  // what follows "--"
};

void text_option(CLI::App& app, const char* name, Text& to, const char* placeholder,
                 const char* description) {
  app.add_option(name, to, description)->option_text(placeholder);
}

void add_call_options(CLI::App& app, Typed& typed) {
  text_option(app, "--shapes", typed.shapes, "FILE",
              "the tensors that FILE lists: a name and extents a line");
  text_option(app, "--dtype", typed.dtype, "TYPE", "element type: float32 (default), bfloat16, int64, ...");
  text_option(app, "--op", typed.op, "OP", "sum (default) or mean");
}

void add_plan(CLI::App& app, Typed& typed) {
  CLI::App& plan = *app.add_subcommand("plan", "Show what a reduction would do: steps, bytes, order, time");
  plan.footer(
      "The output is a plan in its text form, with remarks (#), which --file reads back; or, with\n"
      "--explain, words.\n\n"
      "Example:\n"
      "  onesum plan --devices 4 --bytes 8M --in-place --verify --draw plan.svg\n"
      "  onesum plan --devices 4 --bytes 8M > plan.txt; onesum plan --file plan.txt --verify\n"
      "  onesum plan --spec nccl/rechd --workers 2 --devices 4 --bytes 8M --draw plan.svg\n"
      "  onesum plan --spec nccl/xring --workers 2 --devices 4 --device-type gpu --bytes 8M --verify\n"
      "  onesum plan --spec nccl/machines --workers 4 --machines 2 --devices 2 --bytes 8M --verify\n"
      "  onesum plan --spec pscpu:64k:auto --workers 4 --shapes bench/shapes/resnet50.txt --explain\n"
      "  onesum plan --spec xring --half reduce_scatter --workers 4 --devices 1 --bytes 8M --verify\n"
      "  onesum plan --spec rechd --workers 4096 --devices 1 --bytes 1G --simulate --latency 5us \\\n"
      "    --bandwidth 12.5GB/s");
  text_option(plan, "--devices", typed.devices, "N",
              "devices of this process, or of each worker, one replica each (default 2)");
  text_option(plan, "--spec", typed.spec, "TEXT",
              "all-reduce: xring, nccl/rechd, pscpu:2k:direct#2, auto, ... (default: sum on one device)");
  text_option(plan, "--workers,-n", typed.workers, "W", "workers, embedded in this process");
  add_call_options(plan, typed);
  text_option(plan, "--machines", typed.machines, "M",
              "the workers are on M machines, evenly divided in rank order (default 1)");
  text_option(plan, "--device-type", typed.device_type, "TYPE",
              "cpu (default) or gpu, where nccl is NCCL's own");
  text_option(plan, "--bytes", typed.bytes, "B", "one tensor of B bytes (4, 64k, 8M, ...) on each device");
  plan.add_flag("--in-place", typed.in_place, "results replace their inputs");
  text_option(plan, "--to", typed.to, "DEVICE", "where the result goes (default: every device)");
  text_option(plan, "--reduce-to", typed.reduce_to, "DEVICE",
              "where the sum is formed (default: the result's first)");
  text_option(plan, "--num-packs", typed.num_packs, "P",
              "cut the tensors, concatenated, into P packs (default 0: each by itself)");
  text_option(plan, "--numerics", typed.numerics, "WORD", "canonical (default) or fast");
  text_option(plan, "--half", typed.half, "HALF",
              "only reduce_scatter or all_gather of xring, rechd or direct");
  text_option(plan, "--file", typed.file, "FILE",
              "read a plan instead; --bytes then sizes each of its packs");
  plan.add_flag("--verify", typed.verify, "prove that the plan is right, and say so");
  plan.add_flag("--explain", typed.explain, "only say in words what would be done, and why");
  plan.add_flag("--text", typed.text, "with --explain: print the plan too");
  plan.add_flag("--simulate", typed.simulate,
                "only what it would cost; xring and rechd for thousands of workers");
  text_option(plan, "--latency", typed.latency, "TIME", "of links across workers, such as 5us");
  text_option(plan, "--bandwidth", typed.bandwidth, "SPEED", "of links across workers, such as 10GB/s");
  text_option(plan, "--inside-latency", typed.inside_latency, "TIME", "of links inside a worker");
  text_option(plan, "--inside-bandwidth", typed.inside_bandwidth, "SPEED", "of links inside a worker");
  text_option(plan, "--reduce-speed", typed.reduce_speed, "SPEED",
              "memory that a worker reads and writes, such as 20GB/s");
  text_option(plan, "--constants", typed.constants, "FILE.json",
              "all of these (default: this machine's; see onesum info)");
  text_option(plan, "--draw", typed.draw, "FILE.svg", "draw the plan");
  plan.add_flag("--json", typed.json, "print one JSON object");
}

void add_info(CLI::App& app, Typed& typed) {
  CLI::App& info = *app.add_subcommand("info", "Show version, build, processor and settings");
  info.footer(
      "Predicted times and the spec \"auto\" use constants of the machine: latency and speed of links, of\n"
      "memory and of steps. --measure writes them to $XDG_CACHE_HOME/onesum/machine.json (default\n"
      "~/.cache), which every process reads that uses the library.\n\n"
      "--cluster shows what the launcher of this process (onesum run, a TF_CONFIG, torchrun, srun, mpirun) "
      "says\n"
      "of the workers that take part; run it in place of the program.\n\n"
      "Example:\n  onesum info --json\n  onesum info --measure\n  mpirun -n 2 onesum info --cluster");
  info.add_flag("--measure", typed.measure, "find the machine's constants by timing calls, and keep them");
  info.add_flag("--cluster", typed.cluster, "who takes part, where worker 0 is, and which variables say so");
  info.add_flag("--json", typed.json, "print one JSON object");
}

void add_bench(CLI::App& app, Typed& typed) {
  CLI::App& bench =
      *app.add_subcommand("bench", "Measure reductions, and how close they come to the machine's limit");
  bench.footer(
      "--workers W starts W workers on this machine, which end with the bench. Under a launcher (onesum "
      "run,\n"
      "mpirun, torchrun, srun, a TF_CONFIG) the bench runs on the workers that it has started, and rank 0\n"
      "prints. Without either, one process does it all, with --devices N.\n\n"
      "All workers make the same calls: in each round they wait for each other, make one call that does not\n"
      "count, then call back to back. The time of a call is that of the slowest worker; median, min and p99\n"
      "are over 5 to 5000 samples. Calls shorter than 20 us are timed in groups, of which a sample is the\n"
      "mean.\n\n"
      "Before and after the measurement, the results of a call are compared bit by bit with an independent\n"
      "sum (of whole numbers where the additions are not in the canonical order); \"wrong\" counts elements\n"
      "of all workers, and any of them makes the exit code 1. Memory is allocated by malloc, touched, and\n"
      "aligned to cache lines.\n\n"
      "algbw is the size of one replica over the time, busbw that times 2(n-1)/n for n replicas. The bound\n"
      "is what hand-written loops need in the same rounds; workers first meet in shared memory there. "
      "memory\n"
      "is the most that one process held beyond its tensors.\n\n"
      "Example:\n"
      "  onesum bench -n 4 --transport shm --sizes 8,64k,16M\n"
      "  onesum bench -n 2 --json > ours.json; onesum bench -n 2 --spec xring --plot x.svg --compare "
      "ours.json\n"
      "  onesum run -n 4 -- onesum bench --sizes 8,1M\n"
      "  onesum bench --devices 4 --shapes bench/shapes/resnet50.txt --json --bound\n"
      "  onesum bench --spec nccl/rechd --workers 4 --embedded --devices 2 --sizes 4,64k,8M");
  text_option(bench, "--workers,-n", typed.workers, "W", "worker processes to start on this machine");
  bench.add_flag("--embedded", typed.embedded, "the workers are embedded in this process instead");
  text_option(bench, "--devices", typed.devices, "N",
              "devices of each worker, one replica each (default 1; in one process 2)");
  text_option(bench, "--transport", typed.transport, "NAME",
              "between worker processes: auto (default), shm, tcp or ucx");
  text_option(bench, "--spec", typed.spec, "TEXT",
              "all-reduce: xring, nccl/rechd, pscpu:2k:direct#2, ... (default: auto; in one process the sum "
              "on one device)");
  text_option(bench, "--sizes", typed.sizes, "LIST",
              "bytes per device, such as 4,1k,8M (default 4,1k,64k,1M,8M,64M)");
  add_call_options(bench, typed);
  text_option(bench, "--case", typed.case_name, "NAME",
              "what the names of the results begin with (default workers; in one process inproc)");
  text_option(bench, "--iterations", typed.iterations, "I", "samples per case and size (default: --budget)");
  text_option(bench, "--budget", typed.budget, "SECONDS",
              "per case and size (default: BENCH_BUDGET, else 0.3)");
  text_option(bench, "--rounds", typed.rounds, "R", "cases take turns so often (default 3)");
  bench.add_flag("--check", typed.check, "compare results, before and after the measurement (default)");
  bench.add_flag("--no-check", typed.no_check, "do not");
  bench.add_flag("--huge-pages", typed.huge_pages, "ask the system for huge pages");
  bench.add_flag("--json", typed.json, "print one JSON object a line");
  bench.add_flag("--bound", typed.bound, "with --json: also measure and print the bounds");
  text_option(bench, "--plot", typed.plot, "FILE.svg", "draw times and bandwidths over size");
  text_option(bench, "--compare", typed.compare, "FILE.json",
              "with --plot: draw these, too; JSON lines as --json prints them");
}

void add_run(CLI::App& app, Typed& typed) {
  CLI::App& run = *app.add_subcommand("run", "Run a program as several workers on this machine");
  run.footer(
      "Usage: onesum run -n W [OPTIONS] -- PROGRAM [ARGUMENTS]\n\n"
      "Each worker gets its rank, their number and the job's name in ONESUM_RANK, ONESUM_SIZE and\n"
      "ONESUM_JOB, and its share of the cores: their number in ONESUM_THREADS, and where there are as many\n"
      "cores as workers it runs on no others; unless ONESUM_THREADS is set. Worker 0 reads standard input,\n"
      "the others read nothing. Lines are printed when they are complete.\n\n"
      "When a worker fails, the others get SIGTERM, and SIGKILL if they do not end; the exit code is that "
      "of\n"
      "the worker that failed first (128 + signal if it was killed). SIGINT, SIGTERM, SIGHUP, SIGQUIT,\n"
      "SIGUSR1 and SIGUSR2 are passed on to all workers; a second SIGINT kills them. Whatever workers\n"
      "started ends with them.\n\n"
      "Example:\n"
      "  onesum run -n 4 -- ./train --epochs 3\n"
      "  onesum run -n 2 --keep-going -- sh -c './train > log.$ONESUM_RANK'");
  text_option(run, "--workers,-n", typed.workers, "W", "how many workers to start");
  text_option(run, "--grace", typed.grace, "SECONDS",
              "between SIGTERM and SIGKILL when a worker has failed (default 5)");
  run.add_flag("--keep-going", typed.keep_going,
               "a failing worker does not end the rest; the exit code is the highest");
  run.add_flag("--no-prefix", typed.no_prefix, "do not put the rank before each line");
  run.add_flag("--json", typed.json, "print lines and endings, one JSON object a line");
}

// ---- what was typed, understood ----

DType dtype_of(const Typed& typed) {
  try {
    return parse_dtype(typed.dtype.value_or("float32"));
  } catch (const Error& error) {
    throw UsageError(std::string("--dtype: ") + error.what());
  }
}

ReduceOp op_of(const Typed& typed) {
  const std::string op = typed.op.value_or("sum");
  if (op == "sum") return ReduceOp::kSum;
  if (op == "mean") return ReduceOp::kMean;
  throw UsageError("--op: " + quoted(op) + " is neither sum nor mean");
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

BenchOptions bench_options(const Typed& typed) {
  refuse_both(typed.sizes, "--sizes", typed.shapes, "--shapes");
  if (typed.check && typed.no_check) throw UsageError("--check and --no-check exclude each other");
  if (typed.compare && !typed.plot) throw UsageError("--compare needs --plot FILE.svg");
  BenchOptions options;
  if (typed.devices) options.devices = devices_of(typed);
  if (typed.workers) {
    options.workers =
        parse_count("--workers", *typed.workers, 1, typed.embedded ? kMaxWorkers : kMaxProcesses);
  }
  options.embedded = typed.embedded;
  if (typed.transport) options.transport = transport_of(*typed.transport);
  if (!typed.shapes)
    options.sizes = parse_size_list("--sizes", typed.sizes.value_or(std::string(kDefaultSizes)));
  options.shapes_file = typed.shapes;
  options.case_name = typed.case_name;
  options.dtype = dtype_of(typed);
  for (const std::size_t bytes : options.sizes) elements_in("--sizes", bytes, options.dtype);
  options.op = op_of(typed);
  options.spec = spec_of(typed);
  options.budget = budget_of(typed);
  options.check = !typed.no_check;
  options.huge_pages = typed.huge_pages;
  options.json = typed.json;
  options.bound = typed.bound;
  options.plot = typed.plot;
  options.compare = typed.compare;
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
  add_run(app, typed);
  add_plan(app, typed);
  add_info(app, typed);
  add_bench(app, typed);
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
