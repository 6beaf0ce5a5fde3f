// The environment of the emulated GPU, read once: emulated_gpu.h says what there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace onesum::emulated {

struct Settings {
  bool has_driver = true;
  int devices = 0;           // that the process sees
  std::vector<int> numbers;  // of these, among all
  bool all_are_peers = true;
  std::vector<std::pair<int, int>> peers;  // where not all are
  std::size_t memory_bytes = std::size_t{1} << 30;
  std::uint64_t delay_us = 0;
  std::uint64_t seed = 1;
  bool allows_default_stream = false;
  bool host_is_thread = false;
  bool free_synchronises = false;
  std::uint64_t init_seconds = 30;
  bool aborts_at_violation = true;
  bool fails_at_leaks = false;
  std::string failures;
};

const Settings& settings();

}  // namespace onesum::emulated
