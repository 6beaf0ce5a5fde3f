// What this program does when leftovers_test.cc starts it as a worker.
#pragma once

#include <string_view>

namespace onesum::cli {

inline constexpr std::string_view kCallingWorker = "--calling-worker";

// Joins the others and calls; after some calls there is a file $FOLDER/RANK.
[[noreturn]] void call_for_ever();

}  // namespace onesum::cli
