// `onesum info` and the constants of a machine, as a user would have them.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Info, MeasuresAndKeepsTheConstantsOfTheMachine) {
  const TemporaryFolder folder;
  const std::string cache = "XDG_CACHE_HOME='" + folder.file("cache") + "'";
  EXPECT_THAT(run_tool("info", cache).out, HasSubstr("built in; `onesum info --measure` writes"));
  const ToolRun measured = run_tool("info --measure", cache);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("from " + folder.file("cache/onesum/machine.json")));
  const std::string file = contents_of(folder.file("cache/onesum/machine.json"));
  EXPECT_THAT(file, AllOf(HasSubstr("\"across\""), HasSubstr("\"gamma\""), HasSubstr("\"step\"")));
  const ToolRun after = run_tool("info --json", cache);
  EXPECT_THAT(json_lines(after.out)[0]["constants_from"], HasSubstr("machine.json"));
}

TEST(Info, SaysWhetherMessagesAreVerified) {
  EXPECT_THAT(run_tool("info").out, HasSubstr("ONESUM_CHECKSUMS   off"));
  EXPECT_THAT(run_tool("info", "ONESUM_CHECKSUMS=on").out, HasSubstr("ONESUM_CHECKSUMS   on"));
  EXPECT_THAT(run_tool("info --json", "ONESUM_CHECKSUMS=on").out, HasSubstr(R"("ONESUM_CHECKSUMS":"on")"));
}

// The machine's file counts for predictions, and one given by name counts more.
TEST(Info, ConstantsCount) {
  const TemporaryFolder folder;
  const std::string slow = folder.write("slow.json", R"({"across": {"latency": 0.5}})");
  const std::string slower = folder.write("slower.json", R"({"across": {"latency": 2}})");
  const auto seconds = [](const std::string& arguments, const std::string& environment) {
    const ToolRun run =
        run_tool("plan --json --spec direct -n 2 --devices 1 --bytes 4 " + arguments, environment);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return std::atof(json_lines(run.out)[0]["predicted_us"].c_str()) / 1e6;
  };
  const std::string install = "mkdir -p '" + folder.file("onesum") + "' && cp '" + slow + "' '" +
                              folder.file("onesum/machine.json") + "'";
  ASSERT_EQ(std::system(install.c_str()), 0);
  const std::string cache = "XDG_CACHE_HOME='" + folder.file("") + "'";
  EXPECT_LT(seconds("", ""), 0.001);
  EXPECT_GT(seconds("", cache), 0.5);
  EXPECT_GT(seconds("--constants '" + slower + "'", cache), 2);
  EXPECT_LT(seconds("--latency 1us", cache), 0.001);
}

TEST(Info, ABrokenFileIsNamedWithItsKeyAndTheRemedy) {
  const TemporaryFolder folder;
  ASSERT_EQ(std::system(("mkdir -p '" + folder.file("onesum") + "'").c_str()), 0);
  folder.write("onesum/machine.json", R"({"across": {"latncy": 1}})");
  const std::string cache = "XDG_CACHE_HOME='" + folder.file("") + "'";
  for (const char* command : {"info", "plan --bytes 8", "bench --sizes 4 --budget 0.003"}) {
    const ToolRun run = run_tool(command, cache);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, AllOf(HasSubstr("onesum/machine.json"), HasSubstr("across.\"latncy\""),
                               HasSubstr("did you mean latency?"), HasSubstr("onesum info --measure")))
        << command;
  }
}

}  // namespace
}  // namespace onesum::cli
