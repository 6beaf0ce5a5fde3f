#include "cli/run_tool.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace onesum::cli {

namespace fs = std::filesystem;

std::string tool_path() {
#if defined(ONESUM_TOOL)
  return ONESUM_TOOL;
#else
  return (fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "onesum").string();
#endif
}

ToolRun run_tool(const std::string& command, const std::string& environment) {
  const TemporaryFolder folder;
  const std::string script =
      "tool() { " + environment + " '" + tool_path() + "' \"$@\"; }\n" + "tool " + command + "\n";
  const std::string shell = "bash '" + folder.write("script", script) + "' >'" + folder.file("out") +
                            "' 2>'" + folder.file("err") + "' </dev/null";
  const int status = std::system(shell.c_str());
  ToolRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = contents_of(folder.file("out"));
  run.err = contents_of(folder.file("err"));
  return run;
}

std::vector<std::map<std::string, std::string>> json_lines(const std::string& text) {
  std::vector<std::map<std::string, std::string>> objects;
  for (const std::string& line : lines_of(text)) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) {
      ADD_FAILURE() << "no JSON object: " << line;
      continue;
    }
    EXPECT_TRUE(line.ends_with("}")) << line;
    objects.emplace_back();
    for (const auto& [key, value] : json.items()) objects.back()[key] = value.dump();
  }
  return objects;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "onesum_cli_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make the folder " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(file(name), std::ios::binary) << text;
  return file(name);
}

}  // namespace onesum::cli
