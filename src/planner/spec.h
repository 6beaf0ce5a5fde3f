// All-reduce specs: their text form, and what makes them valid (docs/semantics.md, 6.5).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/all_reduce_spec.h>

namespace onesum::planner {

// The two levels of an algorithm: inside workers and across them. A name without a slash has no second one.
struct Levels {
  std::string_view inside;
  std::string_view across;
};
Levels levels_of(std::string_view alg) noexcept;  // views of `alg`

// Whether one of the spec's levels is `level`.
bool has_level(const AllReduceSpec& spec, std::string_view level) noexcept;

// Refuses a name that is no algorithm; messages begin with `what`.
void check_algorithm(std::string_view alg, const std::string& what);

// `specs` with negative limits as -1; refused if they are not valid.
std::vector<AllReduceSpec> valid_specs(std::vector<AllReduceSpec> specs);

// Reads the text form; refuses what cannot be read, and what is not valid.
std::vector<AllReduceSpec> parse_specs(std::string_view text);

// The shortest text that reads back to `specs`, which are valid.
std::string text_of_specs(std::span<const AllReduceSpec> specs);

}  // namespace onesum::planner
