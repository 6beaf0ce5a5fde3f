// Writes docs/algorithms.md: what each all-reduce is for, and what its plans take, counted in the plans.
//
//   onesum_algorithms_doc PAGE           writes the page
//   onesum_algorithms_doc --check PAGE   says whether the page is what would be written
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "algorithms.h"
#include "measures.h"

namespace onesum::algorithms_doc {
namespace {

constexpr std::int32_t kWorkers[] = {2, 4, 8, 16};

constexpr std::string_view kIntroduction =
    R"(<!-- Written by tools/algorithms_doc from the plans themselves; `make docs` writes it anew. -->
# Algorithms

What the algorithms of [semantics.md](semantics.md), 6.6, do and take. The numbers are counted in the plans that the library makes for one tensor of *B* bytes (`float32`, so large that rounding does not show), each of which is proved first.

* *depth*: messages of which each waits for the one before it, which is what latency multiplies.
* *steps*: copies and sums on the longest chain, of which each waits for the one before it; a worker does one after the other.
* *messages*: between devices of different workers. The devices of one worker share memory and need none.
* *busiest sends*, *all send*: bytes of messages, in multiples of B: of the device that sends most, and of all.
* *memory*: what the plan needs besides inputs and results, on all devices together, in multiples of B.

Sums are canonical ([semantics.md](semantics.md), 3.3) unless a ring is among the levels. `r0` is replica 0.
)";

constexpr std::string_view kAboutDevices = R"(
## Over all devices

Tables are for workers of one device each, which is its worker's CPU at the same time.
)";

constexpr std::string_view kAboutWorkers = R"(
## Inside workers, then across

`a/b`: a inside every worker, b across them. Inside a worker all algorithms but `xring` are one and the same pass over memory.

A worker's replicas need not be a branch of the canonical tree. Two devices are one, so that every worker sends one sum of its own. Of three, some workers' replicas are on two or more branches, and they send as many terms: compare the bytes of 2 and of 3 devices. With `numerics = fast` every worker sends one sum whatever the order (last column); rings always do.
)";

constexpr std::string_view kAboutMachines = R"(
## Across machines

The same algorithms treat all workers alike, also those that share a machine. `machines` does not: alone it is over all devices, as the second level of `a/machines` over workers.
)";

std::string in_tensors(double value) { return fmt::format("{:.4g} B", value); }

std::string title_of(const Algorithm& algorithm) {
  std::string text =
      fmt::format("\n### {}\n\n{}\n\n*When:* {}\n", algorithm.name, algorithm.what, algorithm.when);
  if (algorithm.shards > 1) text += fmt::format("\nIn {} shards:\n", algorithm.shards);
  return text;
}

std::string order_of(const Algorithm& algorithm, std::int32_t workers, std::int32_t devices) {
  const Measures measures = measure({algorithm.name, algorithm.shards, workers, devices, 1, false});
  return fmt::format("\nOrder of the first chunk over {} worker{} of {}: `{}`{}\n", workers,
                     workers == 1 ? "" : "s", devices, measures.expression,
                     measures.canonical ? "" : ", which is not canonical");
}

std::string section_over_devices(const Algorithm& algorithm) {
  std::string text = title_of(algorithm);
  text +=
      "\n| workers | depth | steps | messages | busiest sends | all send | memory "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const std::int32_t workers : kWorkers) {
    const Measures measures = measure({algorithm.name, algorithm.shards, workers, 1, 1, false});
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", workers, measures.depth, measures.steps,
                        measures.messages, in_tensors(measures.busiest_sends), in_tensors(measures.all_send),
                        in_tensors(measures.memory));
  }
  return text + order_of(algorithm, 4, 1);
}

std::string section_over_workers(const Algorithm& algorithm) {
  std::string text = title_of(algorithm);
  text +=
      "\n| workers × devices | depth | steps | messages | busiest sends | all send | memory | all send, "
      "`fast` |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const std::int32_t workers : kWorkers) {
    for (const std::int32_t devices : {2, 3}) {
      const Measures measures = measure({algorithm.name, algorithm.shards, workers, devices, 1, false});
      const Measures fast = measure({algorithm.name, algorithm.shards, workers, devices, 1, true});
      text +=
          fmt::format("| {} × {} | {} | {} | {} | {} | {} | {} | {} |\n", workers, devices, measures.depth,
                      measures.steps, measures.messages, in_tensors(measures.busiest_sends),
                      in_tensors(measures.all_send), in_tensors(measures.memory), in_tensors(fast.all_send));
    }
  }
  return text + order_of(algorithm, 2, 3);
}

std::string section_over_machines(const Algorithm& algorithm) {
  std::string text = title_of(algorithm);
  text +=
      "\nWorkers of 2 devices; *a machine sends*: to all other machines.\n\n"
      "| machines × workers | depth | steps | messages | a machine sends | with `nccl/direct` | all send | "
      "memory |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const std::int32_t machines : {2, 4}) {
    for (const std::int32_t each : {1, 2, 4}) {
      const Measures measures = measure({algorithm.name, 1, machines * each, 2, machines, false});
      const Measures direct = measure({"nccl/direct", 1, machines * each, 2, machines, false});
      text += fmt::format("| {} × {} | {} | {} | {} | {} | {} | {} | {} |\n", machines, each, measures.depth,
                          measures.steps, measures.messages, in_tensors(measures.machine_sends),
                          in_tensors(direct.machine_sends), in_tensors(measures.all_send),
                          in_tensors(measures.memory));
    }
  }
  return text;
}

std::string page() {
  std::string text(kIntroduction);
  text += kAboutDevices;
  for (const Algorithm& algorithm : over_devices()) text += section_over_devices(algorithm);
  text += kAboutWorkers;
  for (const Algorithm& algorithm : over_workers()) text += section_over_workers(algorithm);
  text += kAboutMachines;
  text += section_over_machines(over_machines());
  return text;
}

int check(const std::string& path) {
  std::ifstream file(path);
  const std::string found{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (found == page()) {
    std::puts("algorithms: good");
    return 0;
  }
  std::fprintf(stderr, "%s is not what the plans say: `make docs` writes it anew\n", path.c_str());
  return 1;
}

int write(const std::string& path) {
  std::ofstream file(path);
  file << page();
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "%s cannot be written\n", path.c_str());
  return 1;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == "--check") return check(arguments[1]);
  if (arguments.size() == 1 && !arguments[0].starts_with("-")) return write(arguments[0]);
  std::fputs("usage: onesum_algorithms_doc [--check] PAGE\n", stderr);
  return 2;
}

}  // namespace
}  // namespace onesum::algorithms_doc

int main(int argc, char** argv) {
  try {
    return onesum::algorithms_doc::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onesum_algorithms_doc: %s\n", error.what());
    return 1;
  }
}
