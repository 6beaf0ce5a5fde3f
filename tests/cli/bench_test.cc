// `onesum bench`, run as a user would.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_tool.h"

namespace onesum::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kQuick = "BENCH_BUDGET=0.003";
constexpr const char* kModel = "conv.weight 64 3 7 7\n# a remark\n\nbn.weight 64\nscale\nempty 0 4\n";

std::vector<std::string> cases_of(const ToolRun& run, const std::string& peer = "\"onesum\"") {
  std::vector<std::string> names;
  for (auto& line : json_lines(run.out)) {
    if (line["peer"] == peer) names.push_back(line["case"]);
  }
  return names;
}

TEST(Bench, PrintsOneJsonObjectPerCaseAndSize) {
  const ToolRun run = run_tool("bench --devices 2 --sizes 4,1k --case inproc --json", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(cases_of(run),
              ElementsAre("\"inproc_in\"", "\"inproc_in_plain\"", "\"inproc_out\"", "\"inproc_out_plain\"",
                          "\"inproc_in\"", "\"inproc_in_plain\"", "\"inproc_out\"", "\"inproc_out_plain\""));
  for (auto& line : json_lines(run.out)) {
    EXPECT_EQ(line["world"], "2");
    EXPECT_EQ(line["processes"], "1");
    EXPECT_EQ(line["wrong"], "0");
    EXPECT_EQ(line.count("transport"), 0U);
    EXPECT_EQ(line["dtype"], "\"float32\"");
    EXPECT_EQ(line["op"], "\"sum\"");
    EXPECT_GE(std::atof(line["us_p90"].c_str()), std::atof(line["us_median"].c_str()));
    EXPECT_GE(std::atof(line["us_p99"].c_str()), std::atof(line["us_p90"].c_str()));
    EXPECT_GT(std::atof(line["us_min"].c_str()), 0);
    EXPECT_GE(std::atof(line["us_median"].c_str()), std::atof(line["us_min"].c_str()));
    EXPECT_GE(std::atoi(line["reps"].c_str()), 5);
    EXPECT_LE(std::atoi(line["reps"].c_str()), 5000);
  }
  EXPECT_EQ(json_lines(run.out)[0]["bytes"], "4");
  EXPECT_EQ(json_lines(run.out)[4]["bytes"], "1024");
}

TEST(Bench, ChecksEveryOperation) {
  const std::pair<const char*, const char*> tried[] = {
      {"product", "float32"}, {"product", "complex64"}, {"min", "bfloat16"},  {"min", "int8"},
      {"max", "float64"},     {"max", "bool"},          {"bitand", "uint16"}, {"bitor", "int64"},
      {"bitxor", "bool"},     {"product", "bool"},      {"product", "int8"},  {"product", "float16"}};
  for (const auto& [op, dtype] : tried) {
    const ToolRun run =
        run_tool(std::string("bench --devices 3 --sizes 4k --json --op ") + op + " --dtype " + dtype, kQuick);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    for (auto& line : json_lines(run.out)) {
      EXPECT_EQ(line["wrong"], "0") << op << " " << dtype;
      EXPECT_EQ(line["op"], std::string("\"") + op + "\"");
    }
  }
  for (const char* spec : {"xring", "rechd"}) {
    const ToolRun run = run_tool(
        std::string("bench -n 3 --embedded --sizes 4k --json --op product --dtype complex64 --spec ") + spec,
        kQuick);
    ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  }
}

TEST(Bench, KeysComeInTheOrderThatReadersKnow) {
  const ToolRun run = run_tool("bench --devices 2 --sizes 4 --json", kQuick);
  EXPECT_THAT(run.out,
              ::testing::StartsWith(
                  "{\"peer\":\"onesum\",\"case\":\"inproc_in\",\"world\":2,\"bytes\":4,\"us_median\":"));
}

TEST(Bench, MeasuresTheTensorsOfAFile) {
  const TemporaryFolder folder;
  const std::string model = folder.write("model.txt", kModel);
  const ToolRun run =
      run_tool("bench --devices 4 --shapes '" + model + "' --case sets --json --bound", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(cases_of(run), ElementsAre("\"sets_batch\"", "\"sets_prepared\"", "\"sets_fresh\""));
  EXPECT_THAT(cases_of(run, "\"bound\""), ElementsAre("\"ideal_in\"", "\"ideal_fresh\""));
  EXPECT_EQ(json_lines(run.out)[0]["bytes"], std::to_string(4 * (64 * 3 * 7 * 7 + 64 + 1)));
}

TEST(Bench, BoundsAreInTheTableAlwaysAndInJsonWhenAskedFor) {
  EXPECT_THAT(cases_of(run_tool("bench --sizes 4k --json", kQuick), "\"bound\""), ElementsAre());
  EXPECT_THAT(cases_of(run_tool("bench --sizes 4k --json --bound", kQuick), "\"bound\""),
              ElementsAre("\"ideal_in\"", "\"ideal_out\""));
  const ToolRun table = run_tool("bench --sizes 4k", kQuick);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("of bound"));
  EXPECT_THAT(table.out,
              ::testing::ContainsRegex("inproc_in +4096 +1024 +float32 +sum .* 0 +[0-9.]+ +[0-9]+ % .*\n"));
}

// Sums in the order of a ring are compared, too.
TEST(Bench, MeasuresEmbeddedWorkers) {
  for (const char* spec : {"xring", "nccl/rechd", "pscpu:1k:auto"}) {
    const ToolRun run = run_tool(
        "bench --workers 3 --embedded --devices 2 --sizes 4,64k --json --spec " + std::string(spec), kQuick);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    auto lines = json_lines(run.out);
    ASSERT_EQ(lines.size(), 8U);
    EXPECT_EQ(lines[0]["world"], "6");
  }
  EXPECT_THAT(run_tool("bench --workers 2 --embedded --sizes 4", kQuick).out,
              HasSubstr("2 embedded workers of 2 devices"));
}

TEST(Bench, OneDeviceHasNoBoundInPlace) {
  const ToolRun run = run_tool("bench --devices 1 --sizes 4k", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("inproc_in +4096 .* 0 +- +- .*\n"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("inproc_out +4096 .* [0-9]+ % .*\n"));
}

// Every type and both operations, on a number of devices whose tree is not balanced: the tool compares the
// results.
TEST(Bench, ResultsAreRightForEveryType) {
  for (const char* type : {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
                           "float16", "bfloat16", "float32", "float64", "complex64", "complex128"}) {
    for (const char* op : {"sum", "mean"}) {
      const ToolRun run = run_tool(
          std::string("bench --devices 6 --sizes 48,40k --json --rounds 1 --dtype ") + type + " --op " + op,
          "BENCH_BUDGET=0.0001");
      EXPECT_EQ(run.exit_code, 0) << type << " " << op << ": " << run.err;
    }
  }
}

TEST(Bench, AMeanOfIntegersHasNoPlaceInItsInput) {
  const ToolRun run = run_tool("bench --sizes 4k --dtype int32 --op mean --json", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(cases_of(run), ElementsAre("\"inproc_out\"", "\"inproc_out_plain\""));
}

TEST(Bench, TakesHugePagesAndMoreDevicesThanCores) {
  const ToolRun run = run_tool("bench --devices 9 --sizes 100k --huge-pages", kQuick);
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(Bench, TakesAsManySamplesAsAskedFor) {
  const ToolRun run = run_tool("bench --sizes 4,1M --json --iterations 7");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (auto& line : json_lines(run.out)) EXPECT_EQ(line["reps"], "7");
}

TEST(Bench, ComparesUnlessToldNotTo) {
  const ToolRun run = run_tool("bench --sizes 4 --json --no-check", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (auto& line : json_lines(run.out)) EXPECT_EQ(line.count("wrong"), 0U);
  EXPECT_THAT(run_tool("bench --sizes 4 --no-check", kQuick).out,
              ::testing::ContainsRegex("inproc_out +4 +1 +float32 +sum .* - +[0-9.]+ +[0-9]+ %"));
}

// Fresh results are memory that the caller did not bring.
TEST(Bench, SaysWhatWasHeldBeyondTheTensors) {
  const TemporaryFolder folder;
  const std::string model = folder.write("model.txt", "weight 8 1048576\n");
  const ToolRun run = run_tool("bench --devices 2 --shapes '" + model + "' --json", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 3U);
  if (lines[0].count("extra_bytes") == 0) GTEST_SKIP() << "this system does not tell what a process holds";
  const auto mebibytes = [](const std::string& bytes) { return std::atof(bytes.c_str()) / (1 << 20); };
  EXPECT_LT(mebibytes(lines[0]["extra_bytes"]), 100) << "in place: less than the tensors";
  EXPECT_GE(mebibytes(lines[2]["extra_bytes"]), mebibytes(lines[0]["extra_bytes"]) + 50)
      << "fresh results on two devices";
}

TEST(Bench, BudgetOnTheCommandLineCountsMoreThanTheVariable) {
  const ToolRun run = run_tool("bench --sizes 4 --json --budget 0.001 --rounds 1", "BENCH_BUDGET=3000");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(Bench, MeasuresOtherCollectives) {
  for (const char* op : {"broadcast", "reduce_scatter", "all_gather", "scatter", "all_to_all"}) {
    const ToolRun run = run_tool(std::string("bench --devices 3 --sizes 4,10k --json --op ") + op, kQuick);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    auto lines = json_lines(run.out);
    ASSERT_EQ(lines.size(), std::string(op) == "all_to_all" ? 4U : 8U);
    for (auto& line : lines) {
      EXPECT_EQ(line["op"], "\"" + std::string(op) + "\"");
      EXPECT_EQ(line["wrong"], "0");
    }
    EXPECT_EQ(lines.front()["bytes"], "12");  // a part for each
    const ToolRun table = run_tool(std::string("bench --devices 3 --sizes 4 --op ") + op, kQuick);
    EXPECT_THAT(table.out, HasSubstr("bound: measured of all-reduces only"));
  }
}

struct Wrong {
  const char* arguments;
  int exit_code;
  const char* message;
};

class BenchRefuses : public ::testing::TestWithParam<Wrong> {};

TEST_P(BenchRefuses, ByName) {
  const ToolRun run = run_tool(std::string("bench ") + GetParam().arguments, kQuick);
  EXPECT_EQ(run.exit_code, GetParam().exit_code);
  EXPECT_THAT(run.err, ::testing::StartsWith("onesum: "));
  EXPECT_THAT(run.err, HasSubstr(GetParam().message));
  EXPECT_THAT(run.out, Not(HasSubstr("{")));
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, BenchRefuses,
    ::testing::Values(
        Wrong{"--devices -1 --sizes 4", 2, "--devices: \"-1\" is no number from 1 to"},
        Wrong{"--devices 0 --sizes 4", 2, "--devices: \"0\" is no number from 1 to"},
        Wrong{"--devices two --sizes 4", 2, "--devices: \"two\" is no number"},
        Wrong{"--sizes 12x", 2, "--sizes: \"12x\" is no size; expected bytes such as 4, 64k or 8M"},
        Wrong{"--sizes 4,,8", 2, "--sizes: \"\" is no size"},
        Wrong{"--sizes -4", 2, "--sizes: \"-4\" is no size"}, Wrong{"--sizes 99999999T", 2, "is no size"},
        Wrong{"--sizes 6", 2, "--sizes: 6 bytes are no whole number of float32 elements of 4 bytes"},
        Wrong{"--sizes 0", 2, "--sizes: 0 bytes are no whole number"},
        Wrong{"--sizes 4 --shapes x.txt", 2, "--sizes and --shapes exclude each other"},
        Wrong{"--sizes 4 --dtype flaot32", 2, "--dtype: "},
        Wrong{"--sizes 4 --dtype bool", 1, "invalid_argument: "},
        Wrong{"--sizes 4 --op median", 2, "--op: \"median\" is not one of sum, mean, product, min"},
        Wrong{"--sizes 4 --op median", 2, "all_to_all, send_recv"},
        Wrong{"--sizes 4 --op all_gather --spec direct", 2, "--op all_gather and --spec exclude each other"},
        Wrong{"--sizes 4 --op send_recv", 2, "--op send_recv needs worker processes"},
        Wrong{"--sizes 4 -n 2 --devices 2 --op send_recv", 2, "--devices must be 1"},
        Wrong{"--sizes 4 --budget 0", 2, "--budget: \"0\" is no number of seconds"},
        Wrong{"--sizes 4 --budget nan", 2, "--budget: \"nan\" is no number of seconds"},
        Wrong{"--sizes 4 --rounds 0", 2, "--rounds: \"0\" is no number from 1"},
        Wrong{"--sizes 4 --iterations 0", 2, "--iterations: \"0\" is no number from 1"},
        Wrong{"--sizes 4 --iterations 9 --budget 1", 2, "--iterations and --budget exclude each other"},
        Wrong{"--sizes 4 --check --no-check", 2, "--check and --no-check exclude each other"},
        Wrong{"--sizes 4 --embedded", 2, "--embedded needs --workers W"},
        Wrong{"--sizes 4 -n 2 --embedded --transport shm", 2, "--transport: one process sends nothing"},
        Wrong{"--sizes 4 --transport shm", 2, "--transport: one process sends nothing"},
        Wrong{"--sizes 4 -n 2 --transport rdma", 2,
              "--transport: \"rdma\" is none of auto, shm, tcp and ucx"},
        Wrong{"--sizes 4 -n 0", 2, "--workers: \"0\" is no number from 1"},
        Wrong{"--sizes 4 -n 2 --dtype bool", 1, "invalid_argument: "},
        Wrong{"-n 2 --shapes /does/not/exist.txt", 1, "cannot read \"/does/not/exist.txt\""},
        Wrong{"--sizes 4 -n 2 --compare x.json", 2, "--compare needs --plot FILE.svg"},
        Wrong{"-n 2 --plot x.svg --no-measure", 2, "--no-measure needs --compare FILE.json"},
        Wrong{"--sizes", 2, "--sizes"},
        Wrong{"--shapes /does/not/exist.txt", 1,
              "invalid_argument: cannot read \"/does/not/exist.txt\": No such file or directory"},
        Wrong{"--shapes /", 1, "invalid_argument: cannot read \"/\": Is a directory"},
        Wrong{"--devices 4000 --sizes 1024G", 1, "resource_exhausted: the bench needs"},
        Wrong{"--device 2", 2, "unknown option \"--device\"; did you mean --devices?"},
        Wrong{"extra", 2, "unexpected argument \"extra\""}));

TEST(Bench, AFileThatListsNonsenseIsRefusedByLine) {
  const TemporaryFolder folder;
  const ToolRun words =
      run_tool("bench --shapes '" + folder.write("words.txt", "a 2 2\nb 3 x\n") + "'", kQuick);
  EXPECT_EQ(words.exit_code, 1);
  EXPECT_THAT(words.err, HasSubstr("words.txt:2: \"x\" is no extent; expected a name and extents"));
  const ToolRun empty = run_tool("bench --shapes '" + folder.write("empty.txt", "# nothing\n") + "'", kQuick);
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.err, HasSubstr("lists no tensors"));
}

TEST(Bench, ABadVariableIsRefusedByName) {
  EXPECT_THAT(run_tool("bench --sizes 4", "BENCH_BUDGET=soon").err, HasSubstr("BENCH_BUDGET: \"soon\""));
  const ToolRun run = run_tool("bench --sizes 4", "ONESUM_THREADS=none");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("onesum: invalid_argument: environment variable ONESUM_THREADS"));
}

}  // namespace
}  // namespace onesum::cli
