// `onesum info --cluster`, as a user would run it in place of a program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTorchrun =
    "RANK=1 WORLD_SIZE=10 MASTER_ADDR=n1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=r ONESUM_SECRET=xyzzy "
    "PMI_RANK=7";

TEST(InfoCluster, SaysWhoTakesPartAndWhy) {
  const ToolRun run = run_tool("info --cluster", kTorchrun);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("named by           torchrun\n"), HasSubstr("workers            10: "),
                             HasSubstr("… /job:worker/replica:0/task:9\n"),
                             HasSubstr("rank 1, /job:worker/replica:0/task:1\n"),
                             HasSubstr("worker 0           n1:29501 (TCP)\n")));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("WORLD_SIZE +10 +the number of workers +torchrun\n"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("ONESUM_SECRET +\\(not shown\\) .* the user\n"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("PMI_RANK +7 +passed over: torchrun comes first"));
  EXPECT_THAT(run.out, Not(HasSubstr("xyzzy")));
}

TEST(InfoCluster, SaysSoWhenAlone) {
  const ToolRun run = run_tool("info --cluster");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("no launcher: this process is alone"),
                             HasSubstr("worker 0           this process"), Not(HasSubstr("variable"))));
}

TEST(InfoCluster, AsJson) {
  const auto lines = json_lines(run_tool("info --cluster --json", kTorchrun).out);
  ASSERT_EQ(lines.size(), 1U);
  auto info = lines[0];
  EXPECT_EQ(info["source"], "\"torchrun\"");
  EXPECT_EQ(info["rank"], "1");
  EXPECT_EQ(info["size"], "10");
  EXPECT_EQ(info["worker_0"], "\"n1:29501 (TCP)\"");
  EXPECT_THAT(info["workers"], HasSubstr("\"/job:worker/replica:0/task:9\""));
  EXPECT_THAT(
      info["variables"],
      HasSubstr(R"({"decided":"the rank of this worker","name":"RANK","set_by":"torchrun","value":"1"})"));
  EXPECT_THAT(info["not_honoured"], HasSubstr("PMI_RANK"));
}

TEST(InfoCluster, ABadEnvironmentIsAnError) {
  const ToolRun missing = run_tool("info --cluster", "RANK=1 MASTER_ADDR=n1");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("WORLD_SIZE is not set"));
  EXPECT_EQ(run_tool("info --cluster --measure").exit_code, 2);
}

}  // namespace
}  // namespace onesum::cli
