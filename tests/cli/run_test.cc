// `onesum run`: real processes, as a user would start them.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config.h"
#include "base/machine.h"
#include "cli/running_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::ranges::sort(lines);
  return lines;
}

TEST(Run, GivesEveryWorkerItsPlaceInAJobOfItsOwn) {
  const std::string command = "run -n 3 -- sh -c 'echo $ONESUM_RANK/$ONESUM_SIZE $ONESUM_JOB $OTHER'";
  const auto job_of = [&] {
    const ToolRun run = run_tool(command, "OTHER=kept ONESUM_RANK=7");
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.err, "");
    const auto lines = sorted_lines(run.out);
    EXPECT_THAT(lines, SizeIs(3U));
    const std::string job = lines.at(0).substr(8, 32);
    EXPECT_THAT(lines, ElementsAre("[0] 0/3 " + job + " kept", "[1] 1/3 " + job + " kept",
                                   "[2] 2/3 " + job + " kept"));
    return job;
  };
  EXPECT_NE(job_of(), job_of());
}

std::string cores_of_workers(std::size_t workers, const std::string& environment = {}) {
  return run_tool("run -n " + std::to_string(workers) +
                      " --no-prefix -- sh -c 'grep Cpus_allowed_list /proc/self/status | cut -f2' | sort",
                  environment)
      .out;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Where there are enough, nobody runs on another's; together they have all.
TEST(Run, WorkersHaveCoresOfTheirOwn) {
  const std::string all = cores_of_workers(1);
  EXPECT_EQ(cores_of_workers(2, "ONESUM_THREADS=1"), all + all);
  if (available_cores() < 2) GTEST_SKIP() << "only one core";
  const std::string bound = cores_of_workers(2);
  const std::size_t line = bound.find('\n') + 1;
  EXPECT_NE(bound.substr(0, line), bound.substr(line));
}

// Where there are not, but as many for each, each core has as many; else all have all.
TEST(Run, WorkersShareCoresEvenly) {
  const std::size_t cores = available_cores();
  if (cores < 2) GTEST_SKIP() << "only one core";
  if (cores > 64) GTEST_SKIP() << cores << " cores would take too many workers";
  const std::string all = cores_of_workers(1);
  const std::string each = cores_of_workers(cores);
  std::istringstream lines(each);
  std::string twice;
  for (std::string line; std::getline(lines, line);) twice += repeated(line + "\n", 2);
  EXPECT_EQ(cores_of_workers(2 * cores), twice);
  EXPECT_EQ(cores_of_workers(2 * cores, "ONESUM_THREADS=1"), repeated(all, 2 * cores));
  EXPECT_EQ(cores_of_workers(2 * cores + 1), repeated(all, 2 * cores + 1));
}

TEST(Run, WorkersShareTheCoresUnlessTheUserSaysOtherwise) {
  EXPECT_EQ(run_tool("run -n 1 --no-prefix -- sh -c 'echo ${ONESUM_THREADS-unset}'").out, "unset\n");
  EXPECT_EQ(run_tool("run -n 2 -- sh -c 'echo $ONESUM_THREADS' | sort", "ONESUM_THREADS=3").out,
            "[0] 3\n[1] 3\n");
  const std::string share = std::to_string(std::max(available_cores() / 64, 1U));
  EXPECT_EQ(run_tool("run -n 64 --no-prefix -- sh -c 'echo $ONESUM_THREADS' | sort -u").out, share + "\n");
}

// The arguments reach the program as they are, also those that look like ours.
TEST(Run, PassesArgumentsOn) {
  EXPECT_EQ(run_tool("run -n 1 --no-prefix -- printf '<%s>' -n 2 -- '' 'a b' --help").out,
            "<-n><2><--><><a b><--help>\n");
}

// Both streams into one pipe, read late, lines longer than a pipe takes at once.
TEST(Run, LinesAreNeverTorn) {
  const std::string script =
      R"(long=$(head -c 100000 /dev/zero | tr "\0" x); i=0; while [ $i -lt 20 ]; do i=$((i+1)); )"
      R"(echo out$long; echo err$long >&2; echo; done; printf last)";
  const ToolRun run = run_tool("run -n 3 -- sh -c '" + script + "' 2>&1 | (sleep 0.2; cat)");
  std::map<std::string, int> counts;
  for (const std::string& line : lines_of(run.out)) {
    ++counts[line.substr(0, 8) + " " + std::to_string(line.size())];
  }
  std::map<std::string, int> expected;
  for (const std::string prefix : {"[0] ", "[1] ", "[2] "}) {
    expected[prefix + "outx 100007"] = expected[prefix + "errx 100007"] = expected[prefix + " 4"] = 20;
    expected[prefix + "last 8"] = 1;
  }
  EXPECT_EQ(counts, expected);
}

TEST(Run, StreamsStayApartAndPrefixesCanBeLeftOut) {
  const std::string program = " -- sh -c 'echo out; printf err >&2'";
  const ToolRun prefixed = run_tool("run -n 2" + program);
  EXPECT_THAT(sorted_lines(prefixed.out), ElementsAre("[0] out", "[1] out"));
  EXPECT_THAT(sorted_lines(prefixed.err), ElementsAre("[0] err", "[1] err"));
  const ToolRun plain = run_tool("run -n 2 --no-prefix" + program);
  EXPECT_EQ(plain.out, "out\nout\n");
  EXPECT_EQ(plain.err, "err\nerr\n");
}

TEST(Run, MuchOutputOnBothStreamsDoesNotBlock) {
  const ToolRun run = run_tool(
      "run -n 3 --no-prefix -- sh -c 'head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2' | wc -c");
  EXPECT_EQ(run.out, "9000003\n");
  EXPECT_EQ(run.err.size(), 9000003U);
}

// Worker 0 reads last, so that nothing would be left for it.
TEST(Run, StandardInputGoesToWorker0Alone) {
  const TemporaryFolder folder;
  const std::string script =
      "if [ $ONESUM_RANK = 0 ]; then while [ ! -e $FOLDER/1 ]; do sleep 0.01; done; fi; cat; "
      "echo > $FOLDER/$ONESUM_RANK";
  EXPECT_EQ(run_tool("run -n 2 -- sh -c '" + script + "' < <(echo typed)", "FOLDER=" + folder.file("")).out,
            "[0] typed\n");
}

TEST(Run, AFailingWorkerEndsTheRestAndIsNamed) {
  const ToolRun run = run_tool("run -n 3 -- sh -c '[ $ONESUM_RANK != 1 ] || exit 3; sleep 1000; true'");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.err, "onesum: worker 1 failed first: exit 3; the other 2 get SIGTERM and have 5 s to end\n");
  const ToolRun killed = run_tool("run -n 2 -- sh -c '[ $ONESUM_RANK != 1 ] || kill -9 $$; sleep 1000'");
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
  EXPECT_THAT(killed.err, StartsWith("onesum: worker 1 failed first: killed by SIGKILL; the other one gets"));
  const ToolRun alone = run_tool("run -n 1 -- false");
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_EQ(alone.err, "onesum: worker 0 failed first: exit 1; no other was running\n");
}

TEST(Run, AWorkerThatIgnoresSigtermIsKilled) {
  RunningTool tool({"run", "-n", "3", "--grace", "0.1", "--", "sh", "-c",
                    "trap '' TERM; echo > $FOLDER/$ONESUM_RANK; if [ $ONESUM_RANK = 2 ]; then "
                    "while [ ! -e $FOLDER/0 -o ! -e $FOLDER/1 ]; do sleep 0.01; done; exit 5; fi; "
                    "sleep 1000; sleep 1000"});
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(
      lines_of(run.err),
      ElementsAre("onesum: worker 2 failed first: exit 5; the other 2 get SIGTERM and have 0.1 s to end",
                  "onesum: workers 0, 1 did not end within 0.1 s and were killed with SIGKILL"));
}

void wait_until_stopped(const std::string& pid) {
  wait_until([&] { return contents_of("/proc/" + pid + "/stat").find(") T ") != std::string::npos; },
             "stopped");
}

// Of a process whose number a worker has written to a file.
void wait_until_stopped(const RunningTool& tool, const std::string& pid_file) {
  tool.wait_for_file(pid_file);
  wait_until_stopped(lines_of(contents_of(tool.folder().file(pid_file))).at(0));
}

const std::string kWritePid =
    "echo $$ > $FOLDER/new.$ONESUM_RANK; mv $FOLDER/new.$ONESUM_RANK $FOLDER/$ONESUM_RANK; ";
const std::string kWaitForGo = "while [ ! -e $FOLDER/go ]; do sleep 0.01; done; ";

TEST(Run, AStoppedWorkerCanEnd) {
  RunningTool tool({"run", "-n", "2", "--grace", "1000", "--", "sh", "-c",
                    kWritePid + "[ $ONESUM_RANK = 1 ] || kill -STOP $$; " + kWaitForGo + "exit 4"});
  wait_until_stopped(tool, "0");
  tool.folder().write("go", "");
  EXPECT_EQ(tool.wait().exit_code, 4);
}

// The workers start no process: a shell whose child is stopped before it runs its program waits for it, and
// does not count as stopped.
TEST(Run, StopsAndContinuesWithItsWorkers) {
  RunningTool tool({"run", "-n", "2", "--", "sh", "-c",
                    "echo $$ > $FOLDER/$ONESUM_RANK; while [ ! -e $FOLDER/go ]; do :; done"});
  for (const char* rank : {"0", "1"}) {
    wait_until([&] { return contents_of(tool.folder().file(rank)).ends_with('\n'); }, rank);
  }
  tool.send(SIGTSTP);
  wait_until_stopped(tool, "0");
  wait_until_stopped(tool, "1");
  wait_until_stopped(std::to_string(tool.pid()));  // as a shell does: what comes earlier continues nothing
  tool.send(SIGCONT);
  tool.folder().write("go", "");
  EXPECT_EQ(tool.wait().exit_code, 0);
}

// A worker that cleans up after a signal is not disturbed by a second one because another was faster.
TEST(Run, SigtermDoesNotFollowAnotherSignalToEnd) {
  RunningTool tool({"run", "-n", "2", "--grace", "1000", "--", "sh", "-c",
                    "trap 'echo term' TERM; trap 'echo > $FOLDER/got.$ONESUM_RANK; "
                    "[ $ONESUM_RANK = 1 ] || exit 7' INT; " +
                        kWritePid + kWaitForGo + "echo end"});
  tool.wait_for_file("0");
  tool.wait_for_file("1");
  tool.send(SIGINT);
  tool.wait_for_file("got.1");
  wait_until([&] { return contents_of(tool.folder().file("err")).find("failed first") != std::string::npos; },
             "worker 0 failed");
  tool.folder().write("go", "");
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_EQ(run.out, "[1] end\n");
  EXPECT_THAT(run.err, HasSubstr("worker 0 failed first: exit 7; the other one has 1000 s to end"));
}

TEST(Run, KeepsGoingIfAskedTo) {
  RunningTool tool({"run", "-n", "3", "--keep-going", "--", "sh", "-c",
                    "[ $ONESUM_RANK != 1 ] || exit 4; while [ ! -e $FOLDER/go ]; do sleep 0.01; done; "
                    "echo end; [ $ONESUM_RANK = 0 ]"});
  const std::string first = "onesum: worker 1 failed first: exit 4; the other 2 go on\n";
  wait_until([&] { return contents_of(tool.folder().file("err")) == first; }, first);
  tool.folder().write("go", "");
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_THAT(sorted_lines(run.out), ElementsAre("[0] end", "[2] end"));
  EXPECT_EQ(run.err, first + "onesum: worker 2 failed: exit 1\n");
}

TEST(Run, SignalsArePassedOn) {
  for (const auto& [number, name] : std::map<int, std::string>{{SIGINT, "INT"},
                                                               {SIGTERM, "TERM"},
                                                               {SIGHUP, "HUP"},
                                                               {SIGQUIT, "QUIT"},
                                                               {SIGUSR1, "USR1"},
                                                               {SIGUSR2, "USR2"}}) {
    RunningTool tool(
        {"run", "-n", "2", "--", "sh", "-c",
         "trap 'echo got; exit 0' " + name + "; echo > $FOLDER/$ONESUM_RANK; while :; do sleep 0.01; done"});
    tool.wait_for_file("0");
    tool.wait_for_file("1");
    tool.send(number);
    const ToolRun run = tool.wait();
    EXPECT_EQ(run.exit_code, 0) << name;
    EXPECT_EQ(sorted_lines(run.out), (std::vector<std::string>{"[0] got", "[1] got"})) << name;
  }
}

TEST(Run, AnUnhandledSignalIsTheExitCode) {
  RunningTool tool({"run", "-n", "2", "--", "sh", "-c", "echo > $FOLDER/$ONESUM_RANK; exec sleep 1000"});
  tool.wait_for_file("0");
  tool.wait_for_file("1");
  tool.send(SIGTERM);
  EXPECT_EQ(tool.wait().exit_code, 128 + SIGTERM);
}

TEST(Run, ASecondInterruptKills) {
  RunningTool tool({"run", "-n", "2", "--", "sh", "-c",
                    "trap 'echo > $FOLDER/got.$ONESUM_RANK' INT; echo > $FOLDER/$ONESUM_RANK; "
                    "while :; do sleep 0.01; done"});
  tool.wait_for_file("0");
  tool.wait_for_file("1");
  tool.send(SIGINT);
  tool.wait_for_file("got.0");
  tool.wait_for_file("got.1");
  tool.send(SIGINT);
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 128 + SIGKILL);
  EXPECT_THAT(lines_of(run.err),
              ElementsAre("onesum: SIGINT is passed on to all workers; a second one kills them",
                          "onesum: workers 0, 1 were killed with SIGKILL"));
  tool.wait_until_nothing_is_left();
}

// What is typed reaches worker 0, and Ctrl-C every worker once, although the tool is in the foreground.
TEST(Run, UnderstandsATerminal) {
  RunningTool tool(
      {"run", "-n", "2", "--", "sh", "-c",
       "trap 'echo interrupted >> $FOLDER/log.$ONESUM_RANK; echo > $FOLDER/got.$ONESUM_RANK' INT; "
       "[ $ONESUM_RANK != 0 ] || { read word; echo read $word; }; echo > $FOLDER/$ONESUM_RANK; "
       "while [ ! -e $FOLDER/go ]; do sleep 0.01; done"},
      true);
  tool.type("hello\n");
  tool.wait_for_file("0");
  tool.wait_for_file("1");
  tool.type("\x03");
  tool.wait_for_file("got.0");
  tool.wait_for_file("got.1");
  tool.folder().write("go", "");
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("[0] read hello\r\n"));
  EXPECT_EQ(contents_of(tool.folder().file("log.0")), "interrupted\n");
  EXPECT_EQ(contents_of(tool.folder().file("log.1")), "interrupted\n");
}

// ---- no process is left behind ----

// A worker with a child in its group, one in a session of its own, and one that ignores SIGTERM.
const std::string kFamily =
    "sleep 1000 & setsid sh -c 'echo > $FOLDER/away.$ONESUM_RANK; sleep 1000; true' & "
    "(trap '' TERM; echo > $FOLDER/deaf.$ONESUM_RANK; sleep 1000; sleep 1000) & "
    "while [ ! -e $FOLDER/away.$ONESUM_RANK -o ! -e $FOLDER/deaf.$ONESUM_RANK ]; do sleep 0.01; done; "
    "echo > $FOLDER/$ONESUM_RANK; ";

TEST(Run, EndsWhatWorkersLeaveBehind) {
  for (const std::string end : {"exit 0", "exit 6"}) {
    RunningTool tool({"run", "-n", "2", "--grace", "0.1", "--", "sh", "-c", kFamily + end});
    EXPECT_EQ(tool.wait().exit_code, end.back() - '0');
    EXPECT_THAT(tool.family(), SizeIs(0U)) << end;
  }
}

TEST(Run, WhatWorkersLeaveBehindMayEndByItself) {
  RunningTool tool({"run", "-n", "1", "--grace", "1000", "--", "sh", "-c",
                    "(trap 'echo cleaned; exit' TERM; echo > $FOLDER/0; while :; do sleep 0.01; done) & "
                    "while [ ! -e $FOLDER/0 ]; do sleep 0.01; done"});
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "[0] cleaned\n");
}

TEST(Run, KilledItLeavesNothing) {
  RunningTool tool({"run", "-n", "3", "--", "sh", "-c", kFamily + "wait"});
  for (const char* rank : {"0", "1", "2"}) tool.wait_for_file(rank);
  EXPECT_GT(tool.family().size(), 12U);
  tool.send(SIGKILL);
  EXPECT_EQ(tool.wait().exit_code, 128 + SIGKILL);
  tool.wait_until_nothing_is_left();
}

TEST(Run, NothingIsLeftIfTheKeeperIsKilled) {
  RunningTool tool({"run", "-n", "2", "--", "sh", "-c", kFamily + "wait"});
  for (const char* rank : {"0", "1"}) tool.wait_for_file(rank);
  std::istringstream children(contents_of("/proc/" + std::to_string(tool.pid()) + "/task/" +
                                          std::to_string(tool.pid()) + "/children"));
  pid_t keeper = 0;
  ASSERT_TRUE(children >> keeper);
  kill(keeper, SIGKILL);
  const ToolRun run = tool.wait();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("was killed by SIGKILL; all it had started was ended"));
  EXPECT_THAT(tool.family(), SizeIs(0U));
}

TEST(Run, AReaderThatGoesAwayEndsTheWorkers) {
  const ToolRun run = run_tool("run -n 2 -- yes | head -1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(run.exit_code, 128 + SIGPIPE);
  EXPECT_THAT(lines_of(run.out), SizeIs(1U));
}

TEST(Run, AFullDiskIsNamed) {
  const ToolRun run = run_tool("run -n 1 -- echo x > /dev/full");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("onesum: cannot write to standard output: No space left on device\n"));
}

// ---- mistakes ----

TEST(Run, WhatCannotBeRunIsNamed) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", "no program");
  const std::string script = folder.write("script", "#!/no/such/interpreter\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto expect = [](const std::string& program, int exit_code, const std::string& reason) {
    const ToolRun run = run_tool("run -n 2 -- " + program);
    EXPECT_EQ(run.exit_code, exit_code) << program;
    EXPECT_EQ(run.err, "onesum: cannot run \"" + program + "\": " + reason + "\n");
  };
  expect(folder.file("missing"), 127, "no such file");
  expect("no-such-program", 127, "not found in PATH");
  expect("Makefile", 127, "not found in PATH; did you mean ./Makefile?");
  expect(script, 127, "its interpreter does not exist");
  expect(text, 126, "Permission denied");
}

TEST(Run, MistakesOnTheCommandLineAreNamed) {
  const auto error_of = [](const std::string& command) {
    const ToolRun run = run_tool(command);
    EXPECT_EQ(run.exit_code, 2) << command;
    return run.err;
  };
  EXPECT_THAT(error_of("run -- ./train"), HasSubstr("run needs --workers W: onesum run -n 4 -- ./train"));
  EXPECT_THAT(error_of("run -n 2"), HasSubstr("run needs a program after --: onesum run -n 2 -- ./train"));
  EXPECT_THAT(error_of("run -n 2 --"), HasSubstr("run needs a program"));
  EXPECT_THAT(error_of("run -n 2 ./train --fast"),
              HasSubstr("unexpected argument \"./train\"; the program follows --"));
  EXPECT_THAT(error_of("run -n 2 --kep-going -- x"), HasSubstr("did you mean --keep-going?"));
  EXPECT_THAT(error_of("run -n 0 -- x"), HasSubstr("--workers: \"0\" is no number from 1 to 4096"));
  EXPECT_THAT(error_of("run -n 2 --grace soon -- x"), HasSubstr("--grace: \"soon\" is no number of seconds"));
}

TEST(Run, AVariableThatIsNotOursIsRefusedOnce) {
  const ToolRun run = run_tool("run -n 2 -- echo never", "ONESUM_RNK=1");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(lines_of(run.err), ElementsAre(HasSubstr("did you mean ONESUM_RANK?")));
}

// ---- what is told at the end ----

TEST(Run, PrintsJsonIfAskedTo) {
  const ToolRun run = run_tool(
      "run -n 2 --json --keep-going -- sh -c 'echo \"a \\\"b\\\"\"; [ $ONESUM_RANK = 0 ] && exit 0; echo e "
      ">&2; kill -9 "
      "$$'");
  EXPECT_EQ(run.exit_code, 128 + SIGKILL);
  json_lines(run.out);  // each line is an object
  const auto lines = lines_of(run.out);
  ASSERT_THAT(lines, SizeIs(5U));
  EXPECT_THAT(std::vector(lines.begin(), lines.begin() + 3),
              UnorderedElementsAre(R"({"worker":0,"stream":"stdout","line":"a \"b\""})",
                                   R"({"worker":1,"stream":"stdout","line":"a \"b\""})",
                                   R"({"worker":1,"stream":"stderr","line":"e"})"));
  EXPECT_EQ(lines[3], R"({"worker":0,"exit_code":0})");
  EXPECT_EQ(lines[4], R"({"worker":1,"exit_code":137,"signal":"SIGKILL"})");
}

// This program is its own worker: there it finds where to report.
TEST(Run, EndsWithWhatWorkersReport) {
  if (const auto report = process_config().report) {
    const bool is_first = std::string(std::getenv("ONESUM_RANK")) == "0";
    const WorkerReport half{6, std::size_t{24} << 20, 0.6, is_first ? 1U : 0U, is_first ? 0.5 : 0.25};
    EXPECT_TRUE(send_report(*report, half));
    EXPECT_TRUE(send_report(*report, half));
    return;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string workers = " -- '" + self + "' --gtest_filter=Run.EndsWithWhatWorkersReport";
  const ToolRun run = run_tool("run -n 2" + workers);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.err,
            "onesum: worker 0: 12 calls, 48 MiB, waited 1.20 s, most for worker 1 (1.00 s)\n"
            "onesum: worker 1: 12 calls, 48 MiB, waited 1.20 s, most for worker 0 (500 ms)\n"
            "onesum: worker 1 was waited for most: 1.00 s\n");
  EXPECT_THAT(lines_of(run_tool("run -n 2 --json" + workers).out).back(),
              R"({"worker":1,"exit_code":0,"calls":12,"bytes":50331648,"waited_s":1.2,"most_waited_for":0,)"
              R"("waited_for_it_s":0.5})");
}

}  // namespace
}  // namespace onesum::cli
