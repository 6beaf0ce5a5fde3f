// The command line tool. Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong; of `run`,
// and of `bench` that starts workers, those of the workers.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include <onesum/error.h>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "cli/worker_process.h"

namespace onesum::cli {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

// The exit code.
struct Run {
  int operator()(const TextOptions& options) const { return print(options.text), kDone; }
  int operator()(const PlanOptions& options) const { return run_plan(options), kDone; }
  int operator()(const InfoOptions& options) const { return run_info(options), kDone; }
  int operator()(const BenchOptions& options) const { return run_bench(options); }
  int operator()(const RunOptions& options) const { return run_workers(options); }
};

int complain(int code, const std::string& message) {
  std::fprintf(stderr, "onesum: %s\n", message.c_str());
  return code;
}

int run(int argc, const char* const* argv) {
  try {
    return std::visit(Run(), parse_command_line(argc, argv));
  } catch (const UsageError& error) {
    return complain(kWrongUsage, error.what());
  } catch (const CannotRun& error) {
    return complain(error.exit_code(), error.what());
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
  onesum::cli::occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away shows as a failed write
  return onesum::cli::run(argc, argv);
}
