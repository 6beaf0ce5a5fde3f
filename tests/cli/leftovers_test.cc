// What workers leave behind when all of them are killed at once, with whoever started them: nothing.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/calling_worker.h"
#include "cli/running_tool.h"

namespace onesum::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr int kWorkers = 4;

// Folders for temporary files, and abstract sockets, of this process and those that it starts alone, so that
// whatever is found in them is theirs. Says what stands in the way, if anything does.
std::string be_by_itself() {
  if (::geteuid() != 0) return "only root can give a process folders and sockets of its own";
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 ||
      ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return "this process may not make namespaces";
  }
  for (const std::string folder : {"/tmp", "/var/tmp", "/dev/shm", "/run"}) {
    if (tool_path().starts_with(folder + "/")) return "the tool is in " + folder + ", which would be empty";
    if (fs::exists(folder) && ::mount("none", folder.c_str(), "tmpfs", 0, nullptr) != 0) {
      return "no file system can be mounted at " + folder;
    }
  }
  if (std::system("ip link set lo up") != 0) return "there is no ip(8); install iproute2";
  fs::create_directory("/tmp/home");
  for (const char* name : {"HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_STATE_HOME"}) {
    ::setenv(name, "/tmp/home", 1);
  }
  return "";
}

// Numbers of the memory files of these processes.
std::set<ino_t> memory_files(const std::vector<pid_t>& processes) {
  std::set<ino_t> numbers;
  for (const pid_t process : processes) {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone)) {
      struct stat file{};
      const std::string target = fs::read_symlink(entry.path(), gone);
      if (target.starts_with("/memfd:onesum") && ::stat(entry.path().c_str(), &file) == 0) {
        numbers.insert(file.st_ino);
      }
    }
  }
  return numbers;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> processes;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) processes.push_back(std::stoi(name));
  }
  return processes;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

// Sockets of the Unix kind that somebody has, by their names.
std::vector<std::string> unix_sockets() {
  std::vector<std::string> sockets = lines_of(contents_of("/proc/self/net/unix"));
  sockets.erase(sockets.begin());  // the headings
  return sockets;
}

void expect_nothing_left(const RunningTool& tool) {
  for (int rank = 0; rank < kWorkers; ++rank) tool.wait_for_file(std::to_string(rank));
  const std::vector<pid_t> family = tool.family();
  EXPECT_GT(family.size(), kWorkers);
  const std::set<ino_t> memory = memory_files(family);
  EXPECT_THAT(memory, Not(IsEmpty()));
  EXPECT_THAT(unix_sockets(), Not(IsEmpty()));
  for (const pid_t process : family) ::kill(process, SIGKILL);
  tool.wait_until_nothing_is_left();

  const std::string folder = fs::path(tool.folder().file("")).parent_path();
  for (const char* name : {"0", "1", "2", "3", "out", "err"}) fs::remove(tool.folder().file(name));
  EXPECT_THAT(files_in("/tmp"), UnorderedElementsAre(folder, "/tmp/home"));
  for (const char* place : {"/var/tmp", "/dev/shm", "/run"}) EXPECT_THAT(files_in(place), IsEmpty());
  // A process that ends gives up its memory first, with what it is known by, and then its descriptors.
  wait_until([] { return unix_sockets().empty(); }, "sockets are left");
  wait_until(
      [&] {
        return std::ranges::none_of(memory_files(all_processes()),
                                    [&](ino_t number) { return memory.contains(number); });
      },
      "memory is left");
}

// Changes where the program is: run these tests alone.
void expect_nothing_left_of(const std::vector<std::string>& command) {
  if (const std::string obstacle = be_by_itself(); !obstacle.empty()) GTEST_SKIP() << "SKIPPED: " << obstacle;
  expect_nothing_left(RunningTool(command));
}

std::string this_program() { return fs::read_symlink("/proc/self/exe"); }

std::vector<std::string> four_workers(const std::string& transport) {
  return {"run",
          "-n",
          "4",
          "--",
          "env",
          "ONESUM_TRANSPORT=" + transport,
          this_program(),
          std::string(kCallingWorker)};
}

TEST(Leftovers, NoneOfWorkersOverSharedMemory) { expect_nothing_left_of(four_workers("shm")); }

TEST(Leftovers, NoneOfWorkersOverTcp) { expect_nothing_left_of(four_workers("tcp")); }

// `onesum run` only starts the shell that starts them.
TEST(Leftovers, NoneOfWorkersThatNobodyLooksAfter) {
  const std::string script =
      "for rank in 0 1 2 3; do ONESUM_RANK=$rank ONESUM_SIZE=4 ONESUM_JOB=plain setsid " + this_program() +
      " " + std::string(kCallingWorker) + " & done; wait";
  expect_nothing_left_of({"run", "-n", "1", "--", "sh", "-c", script});
}

}  // namespace
}  // namespace onesum::cli
