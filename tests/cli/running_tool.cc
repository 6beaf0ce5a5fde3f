#include "cli/running_tool.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onesum::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kNever(100);
constexpr std::chrono::milliseconds kPause(5);

void redirect(const std::string& path, int flags, int to) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  dup2(fd, to);
}

}  // namespace

void wait_until(const std::function<bool()>& is_so, const std::string& what) {
  const auto never = std::chrono::steady_clock::now() + kNever;
  while (!is_so()) {
    ASSERT_LT(std::chrono::steady_clock::now(), never) << "waited in vain: " << what;
    std::this_thread::sleep_for(kPause);
  }
}

RunningTool::RunningTool(const std::vector<std::string>& arguments, bool on_terminal) {
  pid_ = on_terminal ? forkpty(&terminal_, nullptr, nullptr, nullptr) : fork();
  if (pid_ == 0) become_tool(arguments, on_terminal);
}

RunningTool::~RunningTool() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void RunningTool::become_tool(const std::vector<std::string>& arguments, bool on_terminal) const {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGPIPE}) std::signal(number, SIG_DFL);
  // In a group whose starter is gone SIGTSTP stops nobody; a group of its own has the test.
  if (!on_terminal) setpgid(0, 0);
  setenv("FOLDER", folder_.file("").c_str(), 1);
  if (!on_terminal) {
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(folder_.file("out"), O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(folder_.file("err"), O_WRONLY | O_CREAT, STDERR_FILENO);
  }
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), tool_path());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  _exit(99);
}

void RunningTool::wait_for_file(const std::string& name) const {
  wait_until([&] { return fs::exists(folder_.file(name)); }, name);
}

void RunningTool::send(int signal) const { kill(pid_, signal); }

void RunningTool::type(const std::string& keys) const {
  ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

ToolRun RunningTool::wait() {
  ToolRun run;
  char bytes[4096];
  while (terminal_ >= 0) {  // until nobody has it open
    const ssize_t count = read(terminal_, bytes, sizeof bytes);
    if (count <= 0) break;
    run.out.append(bytes, static_cast<std::size_t>(count));
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (terminal_ < 0) {
    run.out = contents_of(folder_.file("out"));
    run.err = contents_of(folder_.file("err"));
  }
  return run;
}

std::vector<pid_t> RunningTool::family() const {
  const std::string mark = "FOLDER=" + folder_.file("");
  std::vector<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (contents_of(entry.path() / "environ").find(mark) != std::string::npos)
      pids.push_back(std::stoi(name));
  }
  return pids;
}

void RunningTool::wait_until_nothing_is_left() const {
  wait_until([&] { return family().empty(); }, "processes are left");
}

}  // namespace onesum::cli
