#include "cli/worker_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/machine.h"
#include "base/text.h"
#include "base/worker_report.h"

namespace onesum::cli {
namespace {

struct Ends {
  Fd ours, theirs;
};

[[noreturn]] void fail(std::size_t rank, const char* what) {
  throw Error(ErrorCode::kResourceExhausted,
              fmt::format("cannot start worker {}: {}: {}", rank, what, std::strerror(errno)));
}

// All are closed in every worker but the one they are made for.
Ends make_pipe(std::size_t rank) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(rank, "no pipe");
  Ends pipe{Fd(ends[0]), Fd(ends[1])};
  fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

Ends make_report_socket(std::size_t rank) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) fail(rank, "no socket");
  Ends sockets{Fd(ends[0]), Fd(ends[1])};
  fcntl(sockets.ours.get(), F_SETFL, O_NONBLOCK);
  shutdown(sockets.ours.get(), SHUT_WR);
  return sockets;
}

ReportTarget target_of(const Fd& socket) {
  struct stat status{};
  fstat(socket.get(), &status);
  return {socket.get(), status.st_ino};
}

// ---- the environment ----

void set_variable(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  std::erase_if(environment, [&](const std::string& entry) {
    return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=';
  });
  environment.push_back(fmt::format("{}={}", name, value));
}

// Workers share the cores, unless the user has said how many threads each may have.
bool shares_cores(const Launch& launch) { return launch.workers > 1 && getenv("ONESUM_THREADS") == nullptr; }

// A worker's own cores, where there are enough: two of them that the system put on one core would wait for
// each other there, whatever the others do. Where each core can have as many workers as any other, a worker
// has one, with its neighbours in rank: workers that move between cores find neither caches nor translations
// of addresses there. None where some cores would have more to do than others.
std::optional<cpu_set_t> cores_of(const Launch& launch, std::size_t rank) {
  const std::vector<std::uint32_t> cores = cores_of_process();
  if (!shares_cores(launch) || cores.empty() || cores.back() >= CPU_SETSIZE) return std::nullopt;
  if (cores.size() < launch.workers && launch.workers % cores.size() != 0) return std::nullopt;
  const std::size_t first = rank * cores.size() / launch.workers;
  const std::size_t end = std::max(first + 1, (rank + 1) * cores.size() / launch.workers);
  cpu_set_t own;
  CPU_ZERO(&own);
  for (std::size_t i = first; i < end; ++i) CPU_SET(cores[i], &own);
  return own;
}

std::vector<std::string> environment_of(const Launch& launch, std::size_t rank, const ReportTarget& target) {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  set_variable(environment, "ONESUM_RANK", std::to_string(rank));
  set_variable(environment, "ONESUM_SIZE", std::to_string(launch.workers));
  set_variable(environment, "ONESUM_JOB", launch.job);
  set_variable(environment, "ONESUM_REPORT", to_string(target));
  if (shares_cores(launch)) {
    const std::size_t share = std::max<std::size_t>(available_cores() / launch.workers, 1);
    environment.push_back(fmt::format("ONESUM_THREADS={}", share));
  }
  if (!launch.gpus_of_workers.empty()) {
    set_variable(environment, "CUDA_VISIBLE_DEVICES", launch.gpus_of_workers[rank]);
  }
  return environment;
}

// As exec wants them; valid as long as the texts.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// ---- between fork and exec ----

struct ChildSide {
  char* const* program;
  char* const* environment;
  const sigset_t* signal_mask;
  const cpu_set_t* cores;  // null: those of this process
  pid_t parent;
  int in, out, err, report;
  int failure;  // where an errno is written if exec fails
};

// Only what may be done after fork: no memory is allocated, nothing is thrown.
[[noreturn]] void become_worker(const ChildSide& side) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != side.parent) _exit(128 + SIGKILL);  // it ended before it could have told
  dup2(side.in, STDIN_FILENO);
  dup2(side.out, STDOUT_FILENO);
  dup2(side.err, STDERR_FILENO);
  fcntl(side.report, F_SETFD, 0);
  signal(SIGPIPE, SIG_DFL);  // which this tool ignores
  sigprocmask(SIG_SETMASK, side.signal_mask, nullptr);
  if (side.cores != nullptr) sched_setaffinity(0, sizeof *side.cores, side.cores);
  execvpe(side.program[0], side.program, side.environment);
  const int error = errno;
  const ssize_t ignored = write(side.failure, &error, sizeof error);
  _exit(ignored == sizeof error ? 127 : 126);
}

[[noreturn]] void refuse_program(const std::string& program, int error) {
  std::string reason = std::strerror(error);
  const bool is_path = program.find('/') != std::string::npos;
  const bool is_here = access(program.c_str(), F_OK) == 0;
  if (error == ENOENT && is_path) reason = is_here ? "its interpreter does not exist" : "no such file";
  if (error == ENOENT && !is_path) {
    reason = "not found in PATH";
    if (is_here) reason += "; did you mean ./" + program + "?";
  }
  throw CannotRun("cannot run " + quoted(program) + ": " + reason, error == ENOENT ? 127 : 126);
}

// Returns when the worker runs its program.
void wait_for_exec(const Launch& launch, Ends& failure, pid_t pid) {
  failure.theirs.reset();
  fcntl(failure.ours.get(), F_SETFL, 0);
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(failure.ours.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof error) return;
  waitpid(pid, nullptr, 0);
  refuse_program(launch.program[0], error);
}

}  // namespace

WorkerProcess start_worker(const Launch& launch, std::size_t rank) {
  const bool speaks = rank == 0 && launch.first_speaks;
  Ends out = speaks ? Ends{} : make_pipe(rank);
  Ends err = speaks ? Ends{} : make_pipe(rank);
  Ends failure = make_pipe(rank);
  Ends report = make_report_socket(rank);
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.is_open()) fail(rank, "no /dev/null");

  std::vector<std::string> program = launch.program;
  std::vector<std::string> environment = environment_of(launch, rank, target_of(report.theirs));
  const std::vector<char*> program_pointers = pointers_to(program);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const std::optional<cpu_set_t> cores = cores_of(launch, rank);
  const ChildSide side{program_pointers.data(),
                       environment_pointers.data(),
                       &launch.signal_mask,
                       cores ? &*cores : nullptr,
                       getpid(),
                       rank == 0 ? launch.first_stdin : nothing.get(),
                       speaks ? STDOUT_FILENO : out.theirs.get(),
                       speaks ? STDERR_FILENO : err.theirs.get(),
                       report.theirs.get(),
                       failure.theirs.get()};
  const pid_t pid = fork();
  if (pid < 0) fail(rank, "no process");
  if (pid == 0) become_worker(side);
  setpgid(pid, pid);  // both do, so that neither comes too late; fails if the worker did and runs already
  wait_for_exec(launch, failure, pid);
  return {pid, std::move(out.ours), std::move(err.ours), std::move(report.ours)};
}

int exit_code_of(int status) noexcept {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

std::string ending_text(int status) {
  return WIFSIGNALED(status) ? "killed by " + signal_name(WTERMSIG(status))
                             : fmt::format("exit {}", WEXITSTATUS(status));
}

std::string fresh_job_id() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(ErrorCode::kInternal, std::string("no random bytes: ") + std::strerror(errno));
  }
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace onesum::cli
