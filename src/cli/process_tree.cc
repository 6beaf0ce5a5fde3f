#include "cli/process_tree.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/clock.h"

namespace onesum::cli {
namespace {

constexpr std::chrono::seconds kPatience(10);
constexpr std::chrono::milliseconds kPause(2);

struct Process {
  pid_t pid;
  pid_t parent;
};

// From /proc/<pid>/stat: "12 (name) S 3 …", where a name may hold anything, also ")". Nothing for a process
// that has ended.
std::optional<Process> read_process(const std::filesystem::path& folder) {
  const std::string name = folder.filename();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  std::string line;
  std::ifstream file(folder / "stat");
  std::getline(file, line, '\0');
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  char state = 'X';
  pid_t parent = 0;
  if (std::sscanf(line.c_str() + name_end + 2, "%c %d", &state, &parent) != 2) return std::nullopt;  // NOLINT
  if (state == 'Z' || state == 'X') return std::nullopt;
  return Process{pid, parent};
}

std::vector<Process> living_processes() {
  std::vector<Process> processes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    if (const auto process = read_process(entry->path())) processes.push_back(*process);
  }
  return processes;
}

}  // namespace

void adopt_orphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    throw Error(ErrorCode::kInternal, std::string("cannot adopt orphans: ") + std::strerror(errno));
  }
}

std::vector<pid_t> living_descendants() {
  const std::vector<Process> processes = living_processes();
  std::vector<pid_t> family = {getpid()};
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const Process& process : processes) {
      if (process.parent == family[i]) family.push_back(process.pid);
    }
  }
  family.erase(family.begin());
  return family;
}

std::vector<pid_t> kill_descendants(const std::function<void(pid_t pid, int status)>& ended) {
  const auto deadline = now() + kPatience;
  for (;;) {
    std::vector<pid_t> living = living_descendants();
    for (const pid_t pid : living) kill(pid, SIGKILL);
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) ended(pid, status);
    if (pid < 0 && errno == ECHILD) return {};  // who has no child has no descendants
    if (now() > deadline) return living;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace onesum::cli
