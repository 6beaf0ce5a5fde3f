// Runs the tool as a user would.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace onesum::cli {

// Where the build left it; next to the folder of the test programs if the build did not say.
std::string tool_path();

struct ToolRun {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `command` is what a user types after "onesum", for the shell: "plan --devices 2 --bytes 8 | head -1".
// `environment` goes before it: "BENCH_BUDGET=0.01".
ToolRun run_tool(const std::string& command, const std::string& environment = "");

// Each line as a JSON object: its fields, values in JSON again (a string with its quotes). Fails the test
// where a line is none.
std::vector<std::map<std::string, std::string>> json_lines(const std::string& text);

std::vector<std::string> lines_of(const std::string& text);
std::string contents_of(const std::string& path);

// A folder that is gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const;  // returns the path

 private:
  std::string path_;
};

}  // namespace onesum::cli
