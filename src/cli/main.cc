// The command line tool. Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include <onesum/error.h>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/usage.h"

namespace onesum::cli {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

struct Run {
  void operator()(const TextOptions& options) const { print(options.text); }
  void operator()(const PlanOptions& options) const { run_plan(options); }
  void operator()(const InfoOptions& options) const { run_info(options); }
  void operator()(const BenchOptions& options) const { run_bench(options); }
};

int complain(int code, const std::string& message) {
  std::fprintf(stderr, "onesum: %s\n", message.c_str());
  return code;
}

int run(int argc, const char* const* argv) {
  try {
    std::visit(Run(), parse_command_line(argc, argv));
    return kDone;
  } catch (const UsageError& error) {
    return complain(kWrongUsage, error.what());
  } catch (const Error& error) {
    return complain(kFailed, std::string(to_string(error.code())) + ": " + error.what());
  } catch (const ReaderGone&) {
    return kDone;
  } catch (const std::bad_alloc&) {
    return complain(kFailed, std::string(to_string(ErrorCode::kResourceExhausted)) + ": out of memory");
  } catch (const std::exception& error) {
    return complain(kFailed, std::string(to_string(ErrorCode::kInternal)) + ": " + error.what());
  }
}

}  // namespace
}  // namespace onesum::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away shows as a failed write
  return onesum::cli::run(argc, argv);
}
