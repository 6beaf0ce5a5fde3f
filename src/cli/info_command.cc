#include "cli/info_command.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <onesum/device.h>
#include <onesum/error.h>
#include <onesum/version.h>

#include "api/gpu_report.h"
#include "api/machine_constants.h"
#include "base/amounts.h"
#include "base/config.h"
#include "base/machine.h"
#include "cli/build_info.h"
#include "cli/info_cluster.h"
#include "cli/info_gpus.h"
#include "cli/json_object.h"
#include "cli/link_options.h"
#include "cli/machine.h"
#include "cli/measure_constants.h"
#include "cli/output.h"

namespace onesum::cli {
namespace {

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string memory_text() {
  const auto total = total_memory();
  const auto available = available_memory();
  if (!total || !available) return "unknown";
  return fmt::format("{}, {} available", format_bytes(*total), format_bytes(*available));
}

// What a variable does when it is not set belongs to the answer, too.
std::vector<std::pair<std::string, std::string>> settings_text(const Config& config) {
  return {
      {"ONESUM_THREADS", config.threads
                             ? std::to_string(*config.threads)
                             : fmt::format("not set: {}, the cores that may be used", available_cores())},
      {"ONESUM_POOL_BYTES",
       config.pool_bytes ? format_bytes(*config.pool_bytes) : "not set: the engine decides what it keeps"},
      {"ONESUM_CUDA_PLUGIN",
       config.cuda_plugin.value_or("not set: libonesum_cuda.so beside this program, or beside the library")},
      {"ONESUM_LOG", std::string(to_string(config.log_level))},
      {"ONESUM_CHECKSUMS", config.checksums ? "on" : "off"},
      {"ONESUM_OUTBOX_BYTES", format_bytes(config.outbox_bytes)},
  };
}

std::string constants_text(const api::MachineConstants& constants) {
  const std::string file = api::machine_file().value_or("");
  const std::string source =
      constants.source == file ? fmt::format("from {}, which may be edited or deleted", file)
      : file.empty()
          ? constants.source
          : fmt::format("{}; `onesum info --measure` writes this machine's to {}", constants.source, file);
  return fmt::format("{}\n{:<18} {}", to_text(constants.values), "", source);
}

JsonObject json_of(const plan::LinkConstants& link) {
  JsonObject object;
  object.set("latency", link.latency).set("seconds_per_byte", link.seconds_per_byte);
  return object;
}

JsonObject json_of(const plan::CostConstants& constants) {
  JsonObject object;
  object.set("inside", json_of(constants.inside))
      .set("across", json_of(constants.across))
      .set("gamma", constants.gamma)
      .set("slots", constants.slots)
      .set("step", constants.step);
  return object;
}

// Whatever the file held before does not count.
void measure_and_keep() {
  const std::optional<std::string> file = api::machine_file();
  if (!file) {
    throw Error(ErrorCode::kInvalidArgument,
                "there is no place for the constants of this machine: neither XDG_CACHE_HOME nor HOME is an "
                "absolute path");
  }
  api::use_constants({{}, "built in"});
  const plan::CostConstants constants = measure_constants();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(*file).parent_path(), error);
  write_file(*file, plan::to_json(constants) + "\n");
  api::use_constants({constants, *file});
}

void print_text(const Config& config) {
  const auto line = [](std::string_view name, std::string_view value) {
    print_line(fmt::format("{:<18} {}", name, value));
  };
  line("version", ONESUM_VERSION);
  line("build", build_type());
  line("compiler", compiler());
  line("engines", joined(built_in_engines()));
  line("devices",
       fmt::format("{}, and CPU:1, CPU:2, … as many as a caller names", Device().canonical().to_string()));
  line("cpu", cpu_model().value_or("unknown"));
  line("cpu features", joined(cpu_features()));
  line("kernels for", kernel_target());
  line("cores", fmt::format("{} of {} may be used", available_cores(), online_cores()));
  line("threads", std::to_string(library_threads()));
  line("memory", memory_text());
  for (const auto& [name, value] : gpu_lines()) line(name, value);
  line("UCX", network_text(api::report_network()));
  for (const auto& [name, value] : settings_text(config)) line(name, value);
  line("constants", constants_text(api::constants_in_force()));
}

void print_json(const Config& config) {
  JsonObject settings;
  if (config.threads) settings.set("ONESUM_THREADS", *config.threads);
  if (config.pool_bytes) settings.set("ONESUM_POOL_BYTES", *config.pool_bytes);
  if (config.cuda_plugin) settings.set("ONESUM_CUDA_PLUGIN", *config.cuda_plugin);
  settings.set("ONESUM_LOG", to_string(config.log_level));
  settings.set("ONESUM_CHECKSUMS", config.checksums ? "on" : "off");
  settings.set("ONESUM_OUTBOX_BYTES", config.outbox_bytes);
  JsonObject info;
  info.set("version", ONESUM_VERSION)
      .set("build", build_type())
      .set("compiler", compiler())
      .set("engines", built_in_engines())
      .set("devices", std::vector<std::string>{Device().canonical().to_string()})
      .set("cpu", cpu_model().value_or("unknown"))
      .set("cpu_features", cpu_features())
      .set("kernels", kernel_target())
      .set("usable_cores", available_cores())
      .set("online_cores", online_cores())
      .set("threads", library_threads())
      .set("memory_bytes", total_memory().value_or(0))
      .set("available_bytes", available_memory().value_or(0));
  set_gpus(info);
  set_network(info);
  info.set("settings", settings)
      .set("constants", json_of(api::constants_in_force().values))
      .set("constants_from", api::constants_in_force().source);
  print_line(info.line());
}

}  // namespace

void run_info(const InfoOptions& options) {
  const Config& config = process_config();
  if (options.cluster) return print_cluster(options.json);
  if (options.measure) measure_and_keep();
  options.json ? print_json(config) : print_text(config);
}

}  // namespace onesum::cli
