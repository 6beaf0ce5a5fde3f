// What the tool says of the machine it runs on. Everything may be unknown.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onesum::cli {

std::optional<std::string> cpu_model();
std::vector<std::string> cpu_features();        // those that matter to sums, as the system spells them
std::optional<std::size_t> total_memory();      // bytes
std::optional<std::size_t> available_memory();  // bytes that can be had without swapping

// What a file such as /proc/meminfo says in a line "key: 24689 kB", in bytes.
std::optional<std::size_t> memory_field(const char* path, std::string_view key);

unsigned online_cores();  // of the machine

// As many threads as the library uses: ONESUM_THREADS, else the cores that this process may use.
unsigned library_threads();

}  // namespace onesum::cli
