// What every user of the tool meets: help, versions, mistakes, pipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/version.h>

#include "cli/run_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Tool, HelpNamesTheCommandsAndShowsAnExample) {
  const ToolRun run = run_tool("--help");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("run"), HasSubstr("plan"), HasSubstr("info"), HasSubstr("bench"),
                             HasSubstr("Example:")));
  EXPECT_EQ(run.err, "");
}

TEST(Tool, EveryCommandHasHelpWithAnExample) {
  for (const std::string command : {"run", "plan", "info", "bench"}) {
    const ToolRun run = run_tool(command + " --help");
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, AllOf(HasSubstr("Example:\n  onesum " + command), HasSubstr("--json"))) << command;
  }
}

TEST(Tool, TellsItsVersion) {
  const ToolRun run = run_tool("--version");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "onesum " ONESUM_VERSION "\n");
}

TEST(Tool, AnUnknownCommandIsAnsweredWithTheNearest) {
  const ToolRun run = run_tool("pln --bytes 8");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("onesum: unknown command \"pln\"; did you mean plan?"));
}

TEST(Tool, AnUnknownOptionIsAnsweredWithTheNearest) {
  EXPECT_THAT(run_tool("plan --devices 2 --byte 8").err,
              StartsWith("onesum: unknown option \"--byte\"; did you mean --bytes?"));
  EXPECT_THAT(run_tool("plan --bytes 8 --verfy=1").err,
              StartsWith("onesum: unknown option \"--verfy=1\"; did you mean --verify?"));
  EXPECT_THAT(run_tool("--versoin").err, HasSubstr("did you mean --version?"));
  EXPECT_EQ(run_tool("info --jsno").exit_code, 2);
}

TEST(Tool, WithoutACommandItSaysWhatItNeeds) {
  const ToolRun run = run_tool("");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("a command is needed: run, plan, info or bench"));
}

TEST(Tool, AReaderThatGoesAwayIsNoError) {
  const ToolRun run = run_tool("plan --devices 64 --bytes 8 | true; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  const ToolRun bench = run_tool("bench --sizes 4,8,12,16,20,24 | head -1 >/dev/null; exit ${PIPESTATUS[0]}",
                                 "BENCH_BUDGET=0.001");
  EXPECT_EQ(bench.exit_code, 0);
  EXPECT_EQ(bench.err, "");
}

TEST(Tool, AFullDiskIsAnError) {
  const ToolRun run = run_tool("info > /dev/full");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "onesum: resource_exhausted: cannot write to standard output: No space left on device\n");
}

TEST(Tool, AClosedStandardOutputIsAnError) {
  const ToolRun run = run_tool("info >&-");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("cannot write to standard output: Bad file descriptor"));
}

TEST(Info, TellsOfBuildMachineAndSettings) {
  const ToolRun run = run_tool("info", "ONESUM_THREADS=1 ONESUM_POOL_BYTES=64M");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* name :
       {"version", "build", "compiler", "engines", "devices", "cpu", "kernels for", "cores", "memory"}) {
    EXPECT_THAT(run.out, HasSubstr(name));
  }
  EXPECT_THAT(run.out, HasSubstr(ONESUM_VERSION));
  EXPECT_THAT(run.out, HasSubstr("/job:localhost/replica:0/task:0/device:CPU:0"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("ONESUM_THREADS +1\n"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("ONESUM_POOL_BYTES +64 MiB\n"));
}

TEST(Info, PrintsOneJsonObject) {
  const ToolRun run = run_tool("info --json", "ONESUM_THREADS=1");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["version"], "\"" ONESUM_VERSION "\"");
  EXPECT_THAT(lines[0]["engines"], HasSubstr("[\"host\",\"shm\""));
  EXPECT_EQ(lines[0]["threads"], "1");
  EXPECT_THAT(lines[0]["settings"], HasSubstr("\"ONESUM_THREADS\":1"));
  EXPECT_TRUE(lines[0].contains("kernels"));
  EXPECT_TRUE(lines[0].contains("usable_cores"));
  EXPECT_TRUE(lines[0].contains("memory_bytes"));
}

TEST(Info, AVariableThatIsNotOursIsRefused) {
  const ToolRun run = run_tool("info", "ONESUM_THREDS=1");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              AllOf(StartsWith("onesum: invalid_argument: "), HasSubstr("did you mean ONESUM_THREADS?")));
}

}  // namespace
}  // namespace onesum::cli
