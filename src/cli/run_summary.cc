#include "cli/run_summary.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/amounts.h"
#include "cli/json_object.h"
#include "cli/worker_process.h"

namespace onesum::cli {
namespace {

using Json = nlohmann::json;

std::optional<std::uint64_t> count_in(const Json& json, const char* key) {
  const auto field = json.find(key);
  if (field == json.end() || !field->is_number_unsigned()) return std::nullopt;
  return field->get<std::uint64_t>();
}

std::optional<double> seconds_in(const Json& json, const char* key) {
  const auto field = json.find(key);
  if (field == json.end() || !field->is_number() || !(field->get<double>() >= 0)) return std::nullopt;
  return field->get<double>();
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string report_text(const WorkerReport& report) {
  std::string text = fmt::format("{}, {}, waited {}", counted(report.calls, "call"),
                                 format_bytes(report.bytes), format_time(report.waited_seconds));
  if (report.most_waited_for) {
    text += fmt::format(", most for worker {} ({})", *report.most_waited_for,
                        format_time(report.waited_for_it_seconds));
  }
  return text;
}

// The rank for which the others waited longest, all of them together, and how long.
std::optional<std::pair<unsigned, double>> most_waited_for(std::span<const WorkerEnding> endings) {
  std::map<unsigned, double> waited;
  for (const WorkerEnding& ending : endings) {
    if (!ending.report || !ending.report->most_waited_for) continue;
    waited[*ending.report->most_waited_for] += ending.report->waited_for_it_seconds;
  }
  std::optional<std::pair<unsigned, double>> most;
  for (const auto& [rank, seconds] : waited) {
    if (!most || seconds > most->second) most = {rank, seconds};
  }
  return most;
}

}  // namespace

std::optional<WorkerReport> parse_report(std::string_view message) {
  const Json json = Json::parse(message, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto calls = count_in(json, "calls");
  const auto bytes = count_in(json, "bytes");
  const auto waited = seconds_in(json, "waited_s");
  if (!calls || !bytes || !waited) return std::nullopt;
  WorkerReport report{*calls, *bytes, *waited, std::nullopt, 0};
  const auto most = count_in(json, "most_waited_for");
  const auto seconds = seconds_in(json, "waited_for_it_s");
  if (most.has_value() != seconds.has_value()) return std::nullopt;
  if (most) {
    report.most_waited_for = static_cast<unsigned>(*most);
    report.waited_for_it_seconds = *seconds;
  }
  return report;
}

void add_report(std::optional<WorkerReport>& to, const WorkerReport& report) {
  if (!to) to = WorkerReport{};
  to->calls += report.calls;
  to->bytes += report.bytes;
  to->waited_seconds += report.waited_seconds;
  if (!report.most_waited_for) return;
  if (to->most_waited_for == report.most_waited_for) {
    to->waited_for_it_seconds += report.waited_for_it_seconds;
  } else if (!to->most_waited_for || report.waited_for_it_seconds > to->waited_for_it_seconds) {
    to->most_waited_for = report.most_waited_for;
    to->waited_for_it_seconds = report.waited_for_it_seconds;
  }
}

std::string summary_text(std::span<const WorkerEnding> endings) {
  std::string text;
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    if (!endings[rank].report) continue;
    text += fmt::format("onesum: worker {}: {}\n", rank, report_text(*endings[rank].report));
  }
  if (const auto most = most_waited_for(endings)) {
    text +=
        fmt::format("onesum: worker {} was waited for most: {}\n", most->first, format_time(most->second));
  }
  return text;
}

std::string summary_json(std::span<const WorkerEnding> endings) {
  std::string text;
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    const auto& [status, report] = endings[rank];
    JsonObject object;
    object.set("worker", rank).set("exit_code", exit_code_of(status));
    if (WIFSIGNALED(status)) object.set("signal", signal_name(WTERMSIG(status)));
    if (report) {
      object.set("calls", report->calls).set("bytes", report->bytes).set("waited_s", report->waited_seconds);
      if (report->most_waited_for) {
        object.set("most_waited_for", *report->most_waited_for)
            .set("waited_for_it_s", report->waited_for_it_seconds);
      }
    }
    text += object.line() + '\n';
  }
  return text;
}

}  // namespace onesum::cli
