// The tool while it runs, and the processes it has started.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "cli/run_tool.h"

namespace onesum::cli {

// Asks again and again until it is so; fails the test if it never is.
void wait_until(const std::function<bool()>& is_so, const std::string& what);

// `onesum run …` in the background, with default signals. It and all its descendants are marked in their
// environment. Killed with the object if it still runs.
class RunningTool {
 public:
  // `arguments` follow "onesum". Files that workers make are best in folder(), whose path they get as
  // $FOLDER. On a terminal of its own, all output goes there.
  explicit RunningTool(const std::vector<std::string>& arguments, bool on_terminal = false);
  ~RunningTool();
  RunningTool(const RunningTool&) = delete;
  RunningTool& operator=(const RunningTool&) = delete;

  pid_t pid() const { return pid_; }
  const TemporaryFolder& folder() const { return folder_; }
  void wait_for_file(const std::string& name) const;
  void send(int signal) const;
  void type(const std::string& keys) const;  // on the terminal
  ToolRun wait();                            // for its end

  // Living processes that were started by it, also indirectly, with itself.
  std::vector<pid_t> family() const;
  void wait_until_nothing_is_left() const;

 private:
  [[noreturn]] void become_tool(const std::vector<std::string>& arguments, bool on_terminal) const;

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int terminal_ = -1;
};

}  // namespace onesum::cli
