#include "workers.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <onesum/error.h>

namespace onesum::testing {
namespace {

// Long enough for the slowest machine, short enough to end a test that hangs.
constexpr unsigned kSecondsToLive = 120;

std::string outcome_of(const std::function<std::string()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return "error " + std::string(to_string(error.code())) + ": " + error.what();
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
}

[[noreturn]] void be_child(int pipe, const std::function<std::string()>& body) {
  ::alarm(kSecondsToLive);
  ::setenv("ONESUM_LOG", "error", 0);
  const bool had_failed = ::testing::Test::HasFailure();
  std::string text = outcome_of(body);
  if (!had_failed && ::testing::Test::HasFailure()) text.insert(0, "an expectation of the worker's failed: ");
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(pipe, text.data() + sent, text.size() - sent);
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  ::_exit(0);
}

std::string read_all(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(pipe, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

// A child that runs `body`, and the end of the pipe that it writes to.
std::pair<pid_t, int> start(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    ::close(ends[0]);
    be_child(ends[1], body);
  }
  ::close(ends[1]);
  return {child, ends[0]};
}

}  // namespace

Workers::Workers(int size, const Body& body, const Environment& more)
    : Workers(size, body, [&](int) { return more; }) {}

Workers::Workers(int size, const Body& body, const EnvironmentOf& more) {
  static std::atomic<int> jobs = 0;
  const std::string job = "test-" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
  for (int rank = 0; rank < size; ++rank) {
    const auto [process, pipe] = start([&, rank] {
      ::setenv("ONESUM_RANK", std::to_string(rank).c_str(), 1);
      ::setenv("ONESUM_SIZE", std::to_string(size).c_str(), 1);
      ::setenv("ONESUM_JOB", job.c_str(), 1);
      ::setenv("ONESUM_THREADS", "1", 1);
      for (const auto& [name, value] : more(rank)) ::setenv(name.c_str(), value.c_str(), 1);
      return body(rank);
    });
    workers_.push_back({process, pipe});
  }
}

Workers::~Workers() {
  for (const Worker& worker : workers_) {
    if (worker.process < 0) continue;
    ::kill(worker.process, SIGKILL);
    ::waitpid(worker.process, nullptr, 0);
    ::close(worker.pipe);
  }
}

WorkerEnd Workers::wait_for(int rank) {
  Worker& worker = workers_[static_cast<std::size_t>(rank)];
  WorkerEnd end;
  end.text = read_all(worker.pipe);
  ::close(worker.pipe);
  int status = 0;
  ::waitpid(worker.process, &status, 0);
  worker.process = -1;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

std::vector<WorkerEnd> Workers::wait() {
  std::vector<WorkerEnd> ends;
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    ends.push_back(wait_for(static_cast<int>(rank)));
  }
  return ends;
}

std::vector<WorkerEnd> run_workers(int size, const Body& body, const Environment& more) {
  return Workers(size, body, more).wait();
}

std::vector<WorkerEnd> run_workers(int size, const Body& body, const EnvironmentOf& more) {
  return Workers(size, body, more).wait();
}

std::string run_alone(const std::function<std::string()>& body) {
  const auto [process, pipe] = start(body);
  const std::string text = read_all(pipe);
  ::close(pipe);
  ::waitpid(process, nullptr, 0);
  return text;
}

}  // namespace onesum::testing
