#include "api/machine_constants.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum::api {
namespace {

constexpr std::size_t kLargestFile = 65536;

// An absolute path from the environment.
std::optional<std::filesystem::path> folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return value;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}; correct or delete the file, or let `onesum info --measure` write "
                          "this machine's constants anew",
                          quoted(path), what));
}

struct InForce {
  std::mutex mutex;
  std::optional<MachineConstants> constants;
  std::string fault;  // of the machine's file
};

InForce& in_force() {
  static InForce process;
  return process;
}

MachineConstants constants_of_machine() {
  const std::optional<std::string> path = machine_file();
  std::error_code error;
  if (!path || !std::filesystem::exists(*path, error)) return {{}, "built in"};
  return {read_constants(*path), *path};
}

}  // namespace

std::optional<std::string> machine_file() {
  std::optional<std::filesystem::path> cache = folder_in("XDG_CACHE_HOME");
  if (!cache) {
    cache = folder_in("HOME");
    if (!cache) return std::nullopt;
    *cache /= ".cache";
  }
  return (*cache / "onesum" / "machine.json").string();
}

plan::CostConstants read_constants(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || !file.eof()) {
    refuse(path, text.size() > kLargestFile ? fmt::format("has more than {} bytes", kLargestFile)
                                            : "cannot be read");
  }
  try {
    return plan::constants_from_json(text);
  } catch (const Error& error) {
    refuse(path, error.what());
  }
}

MachineConstants constants_in_force() {
  InForce& process = in_force();
  const std::lock_guard lock(process.mutex);
  if (!process.constants && process.fault.empty()) {
    try {
      process.constants = constants_of_machine();
    } catch (const Error& error) {
      process.fault = error.what();
    }
  }
  if (!process.constants) throw Error(ErrorCode::kInvalidArgument, process.fault);
  return *process.constants;
}

void use_constants(MachineConstants constants) {
  InForce& process = in_force();
  const std::lock_guard lock(process.mutex);
  process.constants = std::move(constants);
}

}  // namespace onesum::api
