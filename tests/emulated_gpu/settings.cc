#include "emulated_gpu/settings.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace onesum::emulated {
namespace {

std::string_view read(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

[[noreturn]] void refuse(const char* name, std::string_view value, const char* expected) {
  std::fprintf(stderr, "emulated GPU: %s is \"%.*s\", expected %s\n", name, static_cast<int>(value.size()),
               value.data(), expected);
  std::abort();
}

void read_number(const char* name, std::uint64_t& number) {
  const std::string value(read(name));
  if (value.empty()) return;
  char* end = nullptr;
  number = std::strtoull(value.c_str(), &end, 10);
  if (*end != '\0') refuse(name, value, "a number");
}

// Whether it is `other` instead of `usual`.
bool read_choice(const char* name, std::string_view usual, std::string_view other) {
  const std::string_view value = read(name);
  if (value.empty() || value == usual) return false;
  if (value != other) refuse(name, value, (std::string(usual) + " or " + std::string(other)).c_str());
  return true;
}

void read_peers(Settings& result) {
  const std::string value(read("EMULATED_GPU_PEERS"));
  if (value.empty() || value == "all") return;
  result.all_are_peers = false;
  if (value == "none") return;
  for (const char* at = value.c_str(); *at != '\0';) {
    int first = 0;
    int second = 0;
    int length = 0;
    if (std::sscanf(at, "%d-%d%n", &first, &second, &length) != 2) {
      refuse("EMULATED_GPU_PEERS", value, "all, none or pairs as in 0-1,2-3");
    }
    result.peers.emplace_back(first, second);
    at += length;
    if (*at == ',') ++at;
  }
}

// Of so many devices those that are listed, up to the first that is not there.
std::vector<int> visible_numbers(int devices) {
  std::vector<int> numbers;
  const char* at = std::getenv("CUDA_VISIBLE_DEVICES");
  if (at == nullptr) {
    for (int device = 0; device < devices; ++device) numbers.push_back(device);
    return numbers;
  }
  int number = 0;
  int length = 0;
  while (std::sscanf(at, "%d%n", &number, &length) == 1 && number >= 0 && number < devices) {
    numbers.push_back(number);
    at += length;
    if (*at == ',') ++at;
  }
  return numbers;
}

Settings read_settings() {
  Settings result;
  result.has_driver = !read_choice("EMULATED_GPU_DRIVER", "present", "none");
  std::uint64_t devices = 0;
  read_number("EMULATED_GPU_DEVICES", devices);
  if (devices > 64) refuse("EMULATED_GPU_DEVICES", read("EMULATED_GPU_DEVICES"), "at most 64");
  result.numbers = visible_numbers(static_cast<int>(devices));
  result.devices = static_cast<int>(result.numbers.size());
  read_peers(result);
  std::uint64_t memory = result.memory_bytes;
  read_number("EMULATED_GPU_MEMORY", memory);
  result.memory_bytes = memory;
  read_number("EMULATED_GPU_DELAY_US", result.delay_us);
  read_number("EMULATED_GPU_SEED", result.seed);
  result.allows_default_stream = read_choice("EMULATED_GPU_ALLOW_DEFAULT_STREAM", "0", "1");
  result.host_is_thread = read_choice("EMULATED_GPU_HOST", "process", "thread");
  result.free_synchronises = read_choice("EMULATED_GPU_FREE", "strict", "synchronise");
  read_number("EMULATED_GPU_INIT_SECONDS", result.init_seconds);
  result.aborts_at_violation = !read_choice("EMULATED_GPU_VIOLATIONS", "abort", "count");
  result.fails_at_leaks = read_choice("EMULATED_GPU_LEAKS", "print", "fail");
  result.failures = read("EMULATED_GPU_FAIL");
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings& result = *new Settings(read_settings());  // threads outlive static objects
  return result;
}

}  // namespace onesum::emulated
