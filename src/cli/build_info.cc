#include "cli/build_info.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace onesum::cli {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kSanitizer = ", AddressSanitizer";
#elif defined(__SANITIZE_THREAD__)
constexpr const char* kSanitizer = ", ThreadSanitizer";
#else
constexpr const char* kSanitizer = "";
#endif

#if defined(__OPTIMIZE__)
constexpr const char* kOptimised = "optimised";
#else
constexpr const char* kOptimised = "not optimised";
#endif

#if defined(NDEBUG)
constexpr const char* kAssertions = ", without assertions";
#else
constexpr const char* kAssertions = ", with assertions";
#endif

}  // namespace

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::string build_type() { return std::string(kOptimised) + kAssertions + kSanitizer; }

std::vector<std::string> built_in_engines() {
  std::vector<std::string> engines = {"host", "shm", "tcp"};
#if defined(ONESUM_WITH_UCX)
  engines.emplace_back("ucx");
#endif
  return engines;
}

std::string kernel_target() {
  // Of the targets that were compiled and that this processor has, Highway takes the best: the lowest bit.
  const auto targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets == 0 ? "unknown" : hwy::TargetName(targets & -targets);
}

}  // namespace onesum::cli
