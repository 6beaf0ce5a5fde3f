#include "cli/bench_report.h"

#include <array>

#include <fmt/format.h>

#include "base/amounts.h"
#include "base/combine.h"
#include "cli/json_object.h"
#include "cli/output.h"
#include "cli/table.h"

namespace onesum::cli {
namespace {

constexpr std::array<Column, 14> kColumns = {{
    {"case", 18, true},
    {"size", 10},
    {"count", 9},
    {"type", 8, true},
    {"op", 14, true},
    {"time", 9},
    {"min", 9},
    {"p99", 9},
    {"algbw", 6},
    {"busbw", 6},
    {"wrong", 5},
    {"bound", 9},
    {"of bound", 8},
    {"memory", 9},
}};
const std::array<std::string, kColumns.size()> kUnits = {
    "", "(B)", "(elem.)", "", "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "", ""};

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e-9;
constexpr int kDecimals = 4;

// Bytes of one replica by the time of a call.
double algorithm_bandwidth(const Workload& workload, double seconds) {
  return static_cast<double>(workload.bytes()) / seconds * kGiga;
}

// What each replica's link carries, were there one: independent of how many replicas there are.
double bus_factor(const Workload& workload, bool messages) {
  const auto n = static_cast<double>(workload.replicas());
  if (messages || workload.collective == CollectiveKind::kBroadcast) return 1;
  return (workload.collective == CollectiveKind::kReduce ? 2 : 1) * (n - 1) / n;
}

bool is_all_reduce(const BenchOptions& options) {
  return options.collective == CollectiveKind::kReduce && !options.messages;
}

std::string_view operation_of(const BenchOptions& options) {
  if (options.messages) return "send_recv";
  return options.collective == CollectiveKind::kReduce ? name_of(options.op) : to_string(options.collective);
}

std::string microseconds(double seconds) {
  const double value = seconds * kMicro;
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : value < 100 ? 2 : value < 10000 ? 1 : 0);
}

std::string stage_text(const Stage& stage, bool is_reduce) {
  const std::string devices = counted(stage.devices_each, stage.is_on_gpus() ? "GPU" : "device");
  if (stage.workers.empty()) return devices + " of one process";
  const std::string each = " of " + devices;
  const std::string spec = stage.spec && is_reduce ? ", spec " + stage.spec->to_string() : "";
  if (!stage.cluster) return counted(stage.workers.size(), "embedded worker") + each + spec;
  const char* plural = stage.processes == 1 ? "" : "es";
  return fmt::format("{} worker process{}{}{}, transport {}", stage.processes, plural, each, spec,
                     stage.transport);
}

// "up to 2 threads each, default pages, "; empty where GPUs do the work.
std::string host_text(const Laboratory& laboratory) {
  if (laboratory.stage.is_on_gpus()) return {};
  return fmt::format("up to {} each, {} pages, ", counted(laboratory.threads, "thread"),
                     laboratory.options.huge_pages ? "huge" : "default");
}

std::string budget_text(const Budget& budget) {
  if (budget.samples) {
    return fmt::format("{} samples in {}", *budget.samples, counted(budget.rounds, "round"));
  }
  return fmt::format("{} of {}", counted(budget.rounds, "round"),
                     format_time(budget.seconds / static_cast<double>(budget.rounds)));
}

}  // namespace

std::string BenchReport::title() const {
  const BenchOptions& options = laboratory_.options;
  return fmt::format("{} of {} on {}", operation_of(options), to_string(options.dtype),
                     stage_text(laboratory_.stage, is_all_reduce(options)));
}

void BenchReport::begin() {
  const BenchOptions& options = laboratory_.options;
  if (options.json || !is_first_) return;
  print_line(fmt::format("{} on {}, {}{}", operation_of(options),
                         stage_text(laboratory_.stage, is_all_reduce(options)), host_text(laboratory_),
                         budget_text(options.budget)));
  print_line(
      "_in: in place, _out: into other memory, both prepared (_plain: not); _batch: in place, _fresh: new "
      "results");
  const bool is_reduce = is_all_reduce(options);
  const bool has_factor = !options.messages && options.collective != CollectiveKind::kBroadcast;
  print_line(fmt::format(
      "time: median; algbw: bytes of one replica / time{}; busbw: algbw{}; memory: what a process held "
      "beyond "
      "its tensors",
      is_reduce || !has_factor ? "" : " (of a whole one, where parts are collected or handed out)",
      !has_factor ? ""
      : is_reduce ? " x 2(n-1)/n over n replicas"
                  : " x (n-1)/n over n replicas"));
  if (laboratory_.stage.is_on_gpus()) {
    print_line("bound and memory: not known of GPUs; a call is done when its results are complete");
  } else if (!is_reduce) {
    print_line("bound: measured of all-reduces only");
  } else if (!laboratory_.has_bounds()) {
    print_line("bound: unknown, as the workers have no memory in common");
  } else if (laboratory_.stage.processes == 1) {
    print_line("bound: the same bytes summed by hand-written loops, same threads");
  } else {
    print_line(
        "bound: workers meet in shared memory, then read and write as many bytes by hand-written loops; "
        "time: "
        "of the slowest worker");
  }
  print_line("");
  print_line(header_line(kColumns));
  print_line(row_line(kColumns, kUnits));
}

void BenchReport::add(const Experiment& experiment) {
  const Workload& workload = experiment.workload();
  for (const MeasuredCase& one : experiment.cases()) {
    points_.push_back({"onesum", one.name, workload.bytes(), one.times.median()});
    if (!is_first_) continue;
    laboratory_.options.json ? print_json("onesum", one.name, workload, one.times, &one)
                             : print_row(workload, one);
  }
  for (std::size_t b = 0; b < Experiment::kBounds; ++b) {
    const NamedBound& bound = experiment.bounds()[b];
    if (!bound.bound) continue;
    points_.push_back({"bound", bound.name, workload.bytes(), bound.times()->median()});
    if (is_first_ && laboratory_.options.json) {
      print_json("bound", bound.name, workload, *bound.times(), nullptr);
    }
  }
}

void BenchReport::print_row(const Workload& workload, const MeasuredCase& result) const {
  const double median = result.times.median();
  const double bandwidth = algorithm_bandwidth(workload, median);
  const Series* bound = result.bound->times();
  const std::array<std::string, kColumns.size()> cells = {
      result.name,
      std::to_string(workload.bytes()),
      std::to_string(workload.elements()),
      std::string(to_string(workload.dtype)),
      std::string(operation_of(laboratory_.options)),
      microseconds(median),
      microseconds(result.times.min()),
      microseconds(result.times.percentile(99)),
      format_number(bandwidth),
      format_number(bandwidth * bus_factor(workload, laboratory_.options.messages)),
      laboratory_.options.check ? std::to_string(result.wrong) : "-",
      bound != nullptr ? microseconds(bound->median()) : "-",
      bound != nullptr ? fmt::format("{:.0f} %", 100 / ratio(result.times, *bound)) : "-",
      result.extra_bytes ? format_bytes(*result.extra_bytes) : "-",
  };
  print_line(row_line(kColumns, cells));
}

void BenchReport::print_json(const char* peer, const std::string& name, const Workload& workload,
                             const Series& times, const MeasuredCase* result) const {
  const Stage& stage = laboratory_.stage;
  const double median = times.median();
  const double bandwidth = algorithm_bandwidth(workload, median);
  JsonObject line;
  line.set("peer", peer)
      .set("case", name)
      .set("world", workload.replicas())
      .set("bytes", workload.bytes())
      .set("us_median", rounded(median * kMicro, kDecimals))
      .set("us_min", rounded(times.min() * kMicro, kDecimals))
      .set("reps", times.samples())
      .set("us_p90", rounded(times.percentile(90) * kMicro, kDecimals))
      .set("us_p99", rounded(times.percentile(99) * kMicro, kDecimals))
      .set("count", workload.elements())
      .set("dtype", to_string(workload.dtype))
      .set("op", operation_of(laboratory_.options))
      .set("algbw_gbps", rounded(bandwidth, kDecimals))
      .set("busbw_gbps", rounded(bandwidth * bus_factor(workload, laboratory_.options.messages), kDecimals))
      .set("processes", stage.processes)
      .set("workers", std::max<std::size_t>(stage.workers.size(), 1))
      .set("devices", stage.devices_each)
      .set("device_type", stage.is_on_gpus() ? "gpu" : "cpu");
  if (stage.cluster) line.set("transport", stage.transport);
  if (stage.spec && is_all_reduce(laboratory_.options)) line.set("spec", stage.spec->to_string());
  if (result != nullptr) {
    if (laboratory_.options.check) line.set("wrong", result->wrong);
    if (const Series* bound = result->bound->times()) {
      line.set("us_bound", rounded(bound->median() * kMicro, kDecimals))
          .set("percent_of_bound", rounded(100 / ratio(times, *bound), 1));
    }
    if (result->extra_bytes) line.set("extra_bytes", *result->extra_bytes);
  }
  print_line(line.line());
}

}  // namespace onesum::cli
