// Rules of CUDA and NCCL that the tested program has broken: printed at once, counted, and fatal unless the
// environment says that they are counted only.
#pragma once

#include <cstddef>
#include <string>

namespace onesum::emulated {

void report_violation(const std::string& text);

std::size_t count_violations();
std::string last_violation();
void forget_violations();

}  // namespace onesum::emulated
