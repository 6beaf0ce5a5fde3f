// What this build was made with and for.
#pragma once

#include <string>
#include <vector>

namespace onesum::cli {

std::string compiler();                       // "gcc 12.2.0"
std::string build_type();                     // "optimised, without assertions"
std::vector<std::string> built_in_engines();  // "host", …; those of plug-ins are not among them
std::string kernel_target();  // the instruction set that the host engine's kernels run on: "AVX2"

}  // namespace onesum::cli
