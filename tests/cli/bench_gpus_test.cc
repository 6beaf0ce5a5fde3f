// `onesum bench --device-type gpu`, on emulated GPUs: it works, counts what is wrong, and says what is
// missing. Times are those of the emulator.
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/emulated_gpus.h"
#include "cli/running_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kQuick = "BENCH_BUDGET=0.003";

std::vector<std::string> fields_of(const ToolRun& run, const std::string& field) {
  std::vector<std::string> values;
  for (auto& line : json_lines(run.out)) values.push_back(line[field]);
  return values;
}

// Every line: so many replicas in so many processes, on GPUs, and nothing wrong.
void expect_right(const ToolRun& run, std::size_t lines, const char* world, const char* processes) {
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(fields_of(run, "wrong"), AllOf(SizeIs(lines), Each("0")));
  EXPECT_THAT(fields_of(run, "world"), Each(world));
  EXPECT_THAT(fields_of(run, "processes"), Each(processes));
  EXPECT_THAT(fields_of(run, "device_type"), Each("\"gpu\""));
  for (auto& line : json_lines(run.out)) {
    EXPECT_EQ(line.count("us_bound") + line.count("percent_of_bound") + line.count("extra_bytes"), 0U);
  }
}

class BenchGpus : public EmulatedGpus {
 protected:
  static ToolRun bench(const std::string& arguments, int gpus, const std::string& more = "") {
    return run_tool("bench --device-type gpu " + arguments,
                    with_gpus(gpus, std::string(kQuick) + " " + more));
  }
};

TEST_F(BenchGpus, MeasuresInOneProcess) {
  expect_right(bench("--devices 3 --sizes 4,40k --json", 3), 8, "3", "1");
}

TEST_F(BenchGpus, MeasuresAnySpec) {
  for (const char* spec : {"nccl", "psgpu", "pscpu", "hierarchical_copy", "auto"}) {
    SCOPED_TRACE(spec);
    expect_right(bench("--devices 2 --sizes 40k --json --spec " + std::string(spec), 2), 4, "2", "1");
  }
  expect_right(bench("-n 2 --embedded --devices 2 --sizes 40k --json --spec psgpu/rechd", 2), 4, "4", "1");
}

TEST_F(BenchGpus, MeasuresOtherTypesAndMeans) {
  const TemporaryFolder folder;
  const std::string model =
      folder.write("model.txt", "conv.weight 64 3 7 7\nbn.weight 64\nscale\nempty 0 4\n");
  expect_right(bench("--devices 2 --dtype bfloat16 --op mean --json --shapes '" + model + "'", 2), 3, "2",
               "1");
  expect_right(bench("--devices 2 --dtype int32 --op mean --json --sizes 4k", 2), 2, "2", "1");
}

TEST_F(BenchGpus, TableHasNoBound) {
  const ToolRun run = bench("--devices 2 --sizes 4k", 2);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("sum on 2 GPUs of one process, 3 rounds of"));
  EXPECT_THAT(run.out, HasSubstr("bound and memory: not known of GPUs; a call is done when its results are"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("inproc_in +4096 +1024 +float32 +sum .* 0 +- +- +-\n"));
}

TEST_F(BenchGpus, AFailureEndsItWithTheGpusName) {
  const ToolRun run = bench("--devices 2 --sizes 4k --json", 2, "EMULATED_GPU_FAIL=launch:3");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("onesum: internal: GPU:"));
}

// ---- worker processes ----

TEST_F(BenchGpus, WorkersMeasureTogether) {
  for (const char* spec : {"nccl", "nccl/xring", "pscpu/pscpu#2"}) {
    SCOPED_TRACE(spec);
    expect_right(bench("-n 2 --devices 2 --sizes 8k --json --spec " + std::string(spec), 4), 4, "4", "2");
  }
}

pid_t pid_of_worker(const RunningTool& tool, const std::string& rank) {
  for (const pid_t pid : tool.family()) {
    const std::string environment = contents_of("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find("ONESUM_RANK=" + rank) != std::string::npos) return pid;
  }
  return -1;
}

std::string gpus_of_worker(const RunningTool& tool, const std::string& rank) {
  const std::string environment =
      contents_of("/proc/" + std::to_string(pid_of_worker(tool, rank)) + "/environ");
  const std::string name = "CUDA_VISIBLE_DEVICES=";
  const std::size_t at = environment.find(name);
  return at == std::string::npos ? "none" : environment.c_str() + at + name.size();
}

// Of those that the bench sees.
TEST_F(BenchGpus, WorkersHaveGpusOfTheirOwn) {
  setenv("LD_LIBRARY_PATH", emulated_gpu_folder().c_str(), 1);
  setenv("ONESUM_CUDA_PLUGIN", cuda_plugin().c_str(), 1);
  setenv("EMULATED_GPU_DEVICES", "6", 1);
  for (const auto& [seen, first, second] :
       {std::tuple("0,1,2,3,4,5", "0,1", "2,3"), std::tuple("5,3,0,1", "5,3", "0,1")}) {
    setenv("CUDA_VISIBLE_DEVICES", seen, 1);
    RunningTool tool(
        {"bench", "--device-type", "gpu", "-n", "2", "--devices", "2", "--sizes", "8", "--budget", "1000"});
    wait_until([&] { return contents_of(tool.folder().file("out")).find("busbw") != std::string::npos; },
               "the bench begins");
    EXPECT_EQ(gpus_of_worker(tool, "0"), first);
    EXPECT_EQ(gpus_of_worker(tool, "1"), second);
  }
}

TEST_F(BenchGpus, WorkersOfALauncherUseWhatTheySee) {
  const ToolRun run = run_tool("run -n 2 --no-prefix -- sh -c 'CUDA_VISIBLE_DEVICES=$ONESUM_RANK \"" +
                                   tool_path() + "\" bench --device-type gpu --spec nccl --sizes 8k --json'",
                               with_gpus(2, kQuick));
  expect_right(run, 4, "2", "2");
}

// ---- what is missing ----

void expect_error(const ToolRun& run, int exit_code, const std::string& message) {
  EXPECT_EQ(run.exit_code, exit_code) << message;
  EXPECT_THAT(run.err, HasSubstr("onesum: " + message));
  EXPECT_EQ(run.out, "");
}

TEST_F(BenchGpus, TooFewAreAnErrorThatCounts) {
  expect_error(bench("--devices 3 --sizes 4", 2), 1, "unavailable: --devices 3: this process has 2 GPUs");
  expect_error(bench("-n 3 --devices 2 --sizes 4", 4), 1,
               "unavailable: 3 workers with 2 GPUs each want 6 in all; 4 were found");
  expect_error(bench("-n 2 --sizes 4", 1), 1,
               "unavailable: 2 workers with 1 GPU each want 2 in all; 1 was found");
}

TEST_F(BenchGpus, NoneAreAnErrorThatSaysWhy) {
  for (const char* where : {"--devices 1", "-n 2"}) {
    expect_error(bench(std::string(where) + " --sizes 4", 2, "EMULATED_GPU_DRIVER=none"), 1,
                 "unavailable: --device-type gpu: no GPU was found: CUDA 13");
  }
}

TEST_F(BenchGpus, TooLittleMemoryIsAnError) {
  const ToolRun run = bench("--devices 2 --sizes 1G --json", 2);
  expect_error(run, 1,
               "resource_exhausted: the bench needs 2 GiB on each GPU, values and results; GPU:0 has 1 GiB");
}

TEST(Bench, OnGpusNothingOfTheHost) {
  const auto refused = [](const std::string& arguments) {
    return run_tool("bench --sizes 4 --device-type " + arguments, kQuick);
  };
  expect_error(refused("tpu"), 2, "--device-type: \"tpu\" is neither cpu nor gpu");
  expect_error(refused("gpu --bound --json"), 2, "--bound and --device-type gpu exclude each other");
  expect_error(refused("gpu --huge-pages"), 2, "--huge-pages and --device-type gpu exclude each other");
  expect_error(run_tool("bench --sizes 4 --device-type gpu", "ONESUM_CUDA_PLUGIN=/does/not/exist.so"), 1,
               "unavailable: --device-type gpu: no GPU was found: /does/not/exist.so: ");
}

}  // namespace
}  // namespace onesum::cli
