// Sizes, times and speeds as options give them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/dtype.h>

namespace onesum::cli {

// Bytes: "4", "64k", "8M", with factors of 1024. Throws UsageError naming the option.
std::size_t parse_size(std::string_view option, std::string_view text);

// "4,1k,1M": at least one.
std::vector<std::size_t> parse_size_list(std::string_view option, std::string_view text);

// A whole number in [min, max]. Throws UsageError naming the option.
std::size_t parse_count(std::string_view option, std::string_view text, std::size_t min, std::size_t max);

// Seconds, more than none. Throws UsageError naming the option.
double parse_seconds(std::string_view option, std::string_view text);

// A duration with its unit, "5us", "1.5ms", "0s", in seconds. Throws UsageError naming the option.
double parse_duration(std::string_view option, std::string_view text);

// Bytes per second, more than none: "10GB/s", "25Gbit/s" (factors of 1000). Throws UsageError naming the
// option.
double parse_rate(std::string_view option, std::string_view text);

// How many elements so many bytes are; at least one. Throws UsageError naming the option where they are not
// whole.
std::size_t elements_in(std::string_view option, std::size_t bytes, DType dtype);

}  // namespace onesum::cli
