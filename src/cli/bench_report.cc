#include "cli/bench_report.h"

#include <array>

#include <fmt/format.h>

#include "base/amounts.h"
#include "cli/json_object.h"
#include "cli/output.h"
#include "cli/table.h"

namespace onesum::cli {
namespace {

constexpr std::array<Column, 9> kColumns = {{
    {"case", 20, true},
    {"size", 10},
    {"count", 10},
    {"type", 10, true},
    {"median", 9},
    {"min", 9},
    {"GB/s", 7},
    {"bound", 9},
    {"of bound", 8},
}};

constexpr double kMicro = 1e6;
constexpr int kDecimals = 4;

}  // namespace

void BenchReport::begin(std::size_t threads) {
  if (options_.json) return;
  const std::string workers =
      options_.workers ? fmt::format("{} embedded workers of ", *options_.workers) : "";
  const std::string spec = options_.spec ? " by " + options_.spec->to_string() : "";
  print_line(fmt::format("{} of {}{} devices in one process{}, up to {} threads, {} pages, {} rounds of {}",
                         options_.op == ReduceOp::kSum ? "sum" : "mean", workers, options_.devices, spec,
                         threads, options_.huge_pages ? "huge" : "default", options_.budget.rounds,
                         format_time(options_.budget.seconds / static_cast<double>(options_.budget.rounds))));
  print_line(
      "_in: in place, _out: into other memory, both prepared (_plain: not); _batch: in place, _fresh: new "
      "results");
  print_line(
      "GB/s: bytes of one replica / median; bound: the same bytes summed by hand-written loops, same "
      "threads\n");
  print_line(header_line(kColumns));
}

void BenchReport::add(const Workload& workload, const Result& result) {
  if (options_.json) {
    print_json("onesum", result.name, workload, *result.times);
    return;
  }
  const double median = result.times->median();
  const std::array<std::string, kColumns.size()> cells = {
      result.name,
      format_bytes(workload.bytes()),
      std::to_string(workload.elements()),
      std::string(to_string(workload.dtype)),
      format_time(median),
      format_time(result.times->min()),
      format_number(static_cast<double>(workload.bytes()) / median * 1e-9),
      result.bound != nullptr ? format_time(result.bound->median()) : "-",
      result.bound != nullptr ? fmt::format("{:.0f} %", 100 / ratio(*result.times, *result.bound)) : "-",
  };
  print_line(row_line(kColumns, cells));
}

void BenchReport::add_bound(const Workload& workload, const std::string& name, const Series& times) {
  if (options_.json && options_.bound) print_json("bound", name, workload, times);
}

void BenchReport::print_json(const char* peer, const std::string& name, const Workload& workload,
                             const Series& times) {
  JsonObject line;
  line.set("peer", peer)
      .set("case", name)
      .set("world", workload.devices)
      .set("bytes", workload.bytes())
      .set("us_median", rounded(times.median() * kMicro, kDecimals))
      .set("us_min", rounded(times.min() * kMicro, kDecimals))
      .set("reps", times.samples());
  print_line(line.line());
}

}  // namespace onesum::cli
