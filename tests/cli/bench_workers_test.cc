// `onesum bench` between worker processes, as a user would run it.
#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/running_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kQuick = "BENCH_BUDGET=0.003";

std::vector<std::string> fields_of(const ToolRun& run, const std::string& field) {
  std::vector<std::string> values;
  for (auto& line : json_lines(run.out)) values.push_back(line[field]);
  return values;
}

bool has_no_network(const ToolRun& run) {
  return run.err.find("which this build of onesum was made without") != std::string::npos;
}

// ---- its own workers ----

struct Team {
  int workers;
  const char* transport;
};

class BenchBetween : public ::testing::TestWithParam<Team> {};

TEST_P(BenchBetween, MeasuresWhatIsRight) {
  const auto [workers, transport] = GetParam();
  const std::string count = std::to_string(workers);
  const ToolRun run =
      run_tool("bench -n " + count + " --transport " + transport + " --sizes 8,40k --case here --json",
               std::string(kQuick) + " UCX_LOG_LEVEL=error");  // it warns where there is no fabric
  if (has_no_network(run)) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(fields_of(run, "case"),
              ElementsAre("\"here_in\"", "\"here_in_plain\"", "\"here_out\"", "\"here_out_plain\"",
                          "\"here_in\"", "\"here_in_plain\"", "\"here_out\"", "\"here_out_plain\""));
  for (auto& line : json_lines(run.out)) {
    EXPECT_EQ(line["peer"], "\"onesum\"");
    EXPECT_EQ(line["world"], count);
    EXPECT_EQ(line["processes"], count);
    EXPECT_EQ(line["workers"], count);
    EXPECT_EQ(line["devices"], "1");
    EXPECT_EQ(line["transport"], std::string("\"") + transport + "\"");
    EXPECT_EQ(line["wrong"], "0");
    EXPECT_GE(std::atof(line["us_median"].c_str()), std::atof(line["us_min"].c_str()));
    EXPECT_GE(std::atoi(line["reps"].c_str()), 5);
  }
}

TEST_P(BenchBetween, MeasuresOtherCollectivesAndMessages) {
  const auto [workers, transport] = GetParam();
  if (workers == 1) return;  // nobody to send to
  for (const char* op : {"reduce_scatter", "all_gather", "all_to_all", "send_recv"}) {
    const ToolRun run = run_tool("bench -n " + std::to_string(workers) + " --transport " + transport +
                                     " --sizes 40k --json --op " + op,
                                 std::string(kQuick) + " UCX_LOG_LEVEL=error");
    if (has_no_network(run)) GTEST_SKIP() << run.err;
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_FALSE(json_lines(run.out).empty());
    for (auto& line : json_lines(run.out)) {
      EXPECT_EQ(line["op"], "\"" + std::string(op) + "\"");
      EXPECT_EQ(line["wrong"], "0");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WorkersAndTransports, BenchBetween,
                         ::testing::Values(Team{2, "shm"}, Team{3, "shm"}, Team{2, "tcp"}, Team{3, "tcp"},
                                           Team{2, "ucx"}, Team{3, "ucx"}, Team{2, "auto"}),
                         [](const auto& team) {
                           return team.param.transport + std::to_string(team.param.workers);
                         });

TEST(BenchWorkers, OneOfThemIsEnough) {
  const ToolRun run = run_tool("bench -n 1 --devices 2 --sizes 8 --json", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(json_lines(run.out).at(0)["world"], "2");
}

TEST(BenchWorkers, TableIsPrintedOnceAndHasABound) {
  const ToolRun run = run_tool("bench -n 2 --sizes 4k", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("sum on 2 worker processes of 1 device, spec auto, transport auto"));
  EXPECT_THAT(lines_of(run.out), SizeIs(5 + 2 + 4));
  EXPECT_THAT(run.out,
              ::testing::ContainsRegex(
                  "case +size +count +type +op +time +min +p99 +algbw +busbw +wrong +bound +of bound"));
  EXPECT_THAT(run.out,
              ::testing::ContainsRegex("workers_in +4096 +1024 +float32 +sum .* 0 +[0-9.]+ +[0-9]+ % .*\n"));
}

TEST(BenchWorkers, BoundsAreMeasuredBetweenThem) {
  const ToolRun run = run_tool("bench -n 3 --sizes 40k --json --bound --transport shm", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_GT(std::atof(lines[0]["percent_of_bound"].c_str()), 0);
  EXPECT_EQ(lines[4]["peer"], "\"bound\"");
  EXPECT_EQ(lines[4]["case"], "\"ideal_in\"");
  EXPECT_EQ(lines[5]["case"], "\"ideal_out\"");
}

TEST(BenchWorkers, TakeTheOptionsOfACall) {
  const TemporaryFolder folder;
  const std::string model =
      folder.write("model.txt", "conv.weight 64 3 7 7\nbn.weight 64\nscale\nempty 0 4\n");
  const ToolRun run = run_tool("bench -n 2 --devices 2 --spec xring --op mean --dtype bfloat16 --shapes '" +
                                   model + "' --iterations 6 --json --case sets",
                               kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(fields_of(run, "case"), ElementsAre("\"sets_batch\"", "\"sets_prepared\"", "\"sets_fresh\""));
  EXPECT_THAT(fields_of(run, "world"), ElementsAre("4", "4", "4"));
  EXPECT_THAT(fields_of(run, "wrong"), ElementsAre("0", "0", "0"));
  EXPECT_THAT(fields_of(run, "reps"), ElementsAre("6", "6", "6"));
  EXPECT_THAT(fields_of(run, "spec"), ElementsAre("\"xring\"", "\"xring\"", "\"xring\""));
}

// A bit that changes in a message is seen by everybody who adds it. Which beat a check is does not matter
// here; one of the first is.
TEST(BenchWorkers, WrongElementsAreCountedAndNamed) {
  for (int beat = 6; beat < 20; ++beat) {
    const ToolRun run =
        run_tool("bench -n 2 --transport shm --spec direct --sizes 8k --json",
                 std::string(kQuick) + " ONESUM_FAULT='rank=1,beat=" + std::to_string(beat) + ",do=corrupt'");
    if (run.err.find("; 2 wrong elements in all") == std::string::npos) continue;
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, AllOf(HasSubstr("onesum: internal: wrong result: case workers_"),
                               HasSubstr(", 2 devices, 8192 bytes, tensor 0 on /job:worker/"),
                               HasSubstr(": element "), HasSubstr(", expected 0x")));
    EXPECT_THAT(fields_of(run, "wrong"), ::testing::UnorderedElementsAre("0", "0", "0", "2"));
    return;
  }
  FAIL() << "no beat was a check";
}

TEST(BenchWorkers, TooLittleMemoryIsToldOnce) {
  const ToolRun run = run_tool("bench -n 2 --sizes 8192G --json", kQuick);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(lines_of(run.err).at(0),
              HasSubstr("onesum: resource_exhausted: the bench needs 32 TiB for 2 devices"));
  EXPECT_THAT(run.err, Not(HasSubstr("[1]")));
}

TEST(BenchWorkers, AReaderThatGoesEndsThemQuietly) {
  const ToolRun run =
      run_tool("bench -n 2 --sizes 4,8,12,16,20,24 | head -1 >/dev/null; exit ${PIPESTATUS[0]}", kQuick);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
}

// ---- those of a launcher ----

TEST(BenchWorkers, UnderALauncherThoseItHasStartedMeasure) {
  const ToolRun run =
      run_tool("run -n 3 --no-prefix -- '" + tool_path() + "' bench --sizes 8 --json", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(fields_of(run, "world"), ElementsAre("3", "3", "3", "3"));
  const ToolRun same = run_tool(
      "run -n 2 --no-prefix -- '" + tool_path() + "' bench --sizes 8 --json -n 2 --transport shm", kQuick);
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(fields_of(same, "transport"), ElementsAre("\"shm\"", "\"shm\"", "\"shm\"", "\"shm\""));
}

// A port that was free a moment ago.
std::string free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), length), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

TEST(BenchWorkers, JoinTheClusterOfATfConfig) {
  const std::string hosts = R"(["127.0.0.1:)" + free_port() + R"(","127.0.0.1:)" + free_port() + R"("])";
  const auto task = [&](int index) {
    return R"(ONESUM_SECRET=sixteen-letters-are-enough ONESUM_JOIN_TIMEOUT=60 BENCH_BUDGET=0.003 )"
           R"(TF_CONFIG='{"cluster":{"worker":)" +
           hosts + R"(},"task":{"type":"worker","index":)" + std::to_string(index) + "}}' ";
  };
  const ToolRun run = run_tool("bench --sizes 8 --json & " + task(0) + "'" + tool_path() +
                                   "' bench --sizes 8 --json; code=$?; wait $! && exit $code",
                               task(1));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(fields_of(run, "world"), ElementsAre("2", "2", "2", "2"));
}

TEST(BenchWorkers, WhatContradictsTheLauncherIsAnError) {
  const std::string launched = "run -n 2 -- '" + tool_path() + "' bench --sizes 8 ";
  const ToolRun other_size = run_tool(launched + "-n 3", kQuick);
  EXPECT_EQ(other_size.exit_code, 2);
  EXPECT_THAT(other_size.err,
              HasSubstr("--workers: 3 asked for, and the launcher (onesum run) has started 2; leave"));
  const ToolRun other_transport =
      run_tool(launched + "--transport shm", std::string(kQuick) + " ONESUM_TRANSPORT=tcp");
  EXPECT_EQ(other_transport.exit_code, 2);
  EXPECT_THAT(other_transport.err, HasSubstr("--transport: shm asked for, and the workers of the launcher "
                                             "(onesum run) have ONESUM_TRANSPORT=tcp; leave one out"));
}

// ---- the end ----

std::vector<std::string> long_bench(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"bench", "-n", "3", "--sizes", "8", "--budget", "1000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The table's head, which rank 0 prints when all have met.
void wait_until_it_measures(const RunningTool& tool) {
  wait_until([&] { return contents_of(tool.folder().file("out")).find("busbw") != std::string::npos; },
             "the bench begins");
}

pid_t pid_of_worker(const RunningTool& tool, int rank) {
  for (const pid_t pid : tool.family()) {
    const std::string environment = contents_of("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find("ONESUM_RANK=" + std::to_string(rank)) != std::string::npos) return pid;
  }
  return -1;
}

TEST(BenchWorkers, AWorkerThatDiesIsNamedAndNothingIsLeft) {
  RunningTool tool(long_bench());
  wait_until_it_measures(tool);
  const pid_t worker = pid_of_worker(tool, 2);
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  const ToolRun run = tool.wait();
  // Another worker may see it and end before the system has let go of all that the dead one had.
  EXPECT_THAT(run.exit_code, ::testing::AnyOf(128 + SIGKILL, 1));
  EXPECT_THAT(run.err, ::testing::AnyOf(HasSubstr("onesum: worker 2 failed first: killed by SIGKILL"),
                                        HasSubstr("worker 2 (/job:worker/replica:0/task:2) is gone")));
  tool.wait_until_nothing_is_left();
}

TEST(BenchWorkers, NothingIsLeftWhenTheBenchIsKilled) {
  RunningTool tool(long_bench());
  wait_until_it_measures(tool);
  tool.send(SIGKILL);
  tool.wait();
  tool.wait_until_nothing_is_left();
}

TEST(BenchWorkers, CtrlCOnATerminalEndsThem) {
  RunningTool tool(
      {"bench", "-n", "2", "--sizes", "8", "--iterations", "1000000", "--plot", "/does/not/matter.svg"},
      true);
  wait_until([&] { return pid_of_worker(tool, 1) > 0; }, "a worker runs");
  tool.type("\x03");
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 128 + SIGINT) << run.out;
  EXPECT_THAT(run.out, HasSubstr("SIGINT is passed on to all workers"));
  tool.wait_until_nothing_is_left();
}

TEST(BenchWorkers, ProgressIsForTerminals) {
  RunningTool tool({"bench", "-n", "2", "--sizes", "8", "--iterations", "6"}, true);
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\r\033[Konesum bench: 8 B (1 of 1), round 3 of 3\r\033[K"),
                             HasSubstr("workers_in ")));
}

}  // namespace
}  // namespace onesum::cli
