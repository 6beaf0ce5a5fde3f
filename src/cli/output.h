// Where the tool's results go: standard output and files. Every write is checked and reaches the system at
// once, so that a reader at the other end of a pipe sees lines as they are made.
#pragma once

#include <string>
#include <string_view>

namespace onesum::cli {

// The reader of standard output has gone (`onesum bench | head -1`): no error, but nothing is left to do.
struct ReaderGone {};

// Opens what the caller has closed of the standard descriptors, so that nothing that is opened later gets
// their numbers. Reading from them finds nothing, writing to them fails as before.
void occupy_standard_descriptors() noexcept;

// Writes to standard output. Throws ReaderGone if nobody reads, onesum::Error if it cannot be written.
void print(std::string_view text);

// The same with a line end.
void print_line(std::string_view text);

// Replaces or creates a file; throws onesum::Error naming it.
void write_file(const std::string& path, std::string_view text);

// The contents of a file; throws onesum::Error naming it, also for files of more than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{64} << 20);

}  // namespace onesum::cli
