// Minutes of random calls between worker processes that are killed, stopped and started again at random.
// Ends with a count of calls, faults and wrong results, of which there must be none.
//
//   onesum_soak [--seconds S] [--seed N]
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "supervisor.h"

namespace {

[[noreturn]] void show_usage() {
  std::fputs("usage: onesum_soak [--seconds S] [--seed N]\n", stderr);
  std::exit(2);
}

unsigned number_from(const char* text) {
  char* end = nullptr;
  const unsigned long number = std::strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0' || number > 0xffffffffUL) show_usage();
  return static_cast<unsigned>(number);
}

}  // namespace

int main(int argc, char** argv) {
  unsigned seconds = 600;
  unsigned seed = std::random_device()();
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) show_usage();
    if (option == "--seconds") {
      seconds = number_from(argv[i + 1]);
    } else if (option == "--seed") {
      seed = number_from(argv[i + 1]);
    } else {
      show_usage();
    }
  }
  std::printf("onesum_soak --seconds %u --seed %u\n", seconds, seed);
  std::fflush(stdout);
  return onesum::soak::supervise(std::chrono::seconds(seconds), seed) ? 0 : 1;
}
