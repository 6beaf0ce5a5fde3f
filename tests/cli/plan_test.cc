// `onesum plan`, run as a user would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Sum {
  int devices;
  const char* step;
  const char* expression;
};

class PlanOfSum : public ::testing::TestWithParam<Sum> {};

TEST_P(PlanOfSum, ShowsStepsOrderBytesAndTimeAndIsVerified) {
  const ToolRun run =
      run_tool("plan --devices " + std::to_string(GetParam().devices) + " --bytes 1M --verify");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(GetParam().step));
  EXPECT_THAT(run.out, HasSubstr(std::string("# pack 0 = ") + GetParam().expression + "\n"));
  EXPECT_THAT(run.out, HasSubstr("# order of additions: canonical\n"));
  EXPECT_THAT(run.out, HasSubstr("1 tensor, 262144 float32, 1 MiB"));
  EXPECT_THAT(run.out, HasSubstr("bytes read"));
  EXPECT_THAT(run.out, HasSubstr(std::to_string(GetParam().devices << 20)));
  EXPECT_THAT(run.out, HasSubstr("# predicted time: "));
  EXPECT_THAT(run.out, HasSubstr("# verified: "));
}

INSTANTIATE_TEST_SUITE_P(OneToFour, PlanOfSum,
                         ::testing::Values(Sum{1, "copy on 0: b1 = b0", "r0"},
                                           Sum{2, "reduce on 0 in float32: b2 b3 = b0 + b1", "r0 + r1"},
                                           Sum{3, "b3 b4 b5 = (b0 + b1) + b2", "(r0 + r1) + r2"},
                                           Sum{4, "b4 b5 b6 b7 = (b0 + b1) + (b2 + b3)",
                                               "(r0 + r1) + (r2 + r3)"}));

TEST(Plan, SaysThatItIsVerifiedOnlyIfAsked) {
  const ToolRun run = run_tool("plan --devices 2 --bytes 8");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, Not(HasSubstr("verified")));
}

TEST(Plan, InPlaceAndMeanShowInThePlan) {
  const ToolRun run = run_tool("plan --devices 2 --bytes 8 --in-place --op mean --dtype bf16 --verify");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# mean of 2 replicas in place: 1 tensor, 4 bfloat16, 8 B\n"));
  EXPECT_THAT(run.out, HasSubstr("b0 inout 0"));
  EXPECT_THAT(run.out, HasSubstr("in float32: b0 b1 = (b0 + b1) / 2"));
}

TEST(Plan, OfEveryOperation) {
  for (const char* op : {"product", "min", "max", "bitand", "bitor", "bitxor"}) {
    const std::string name(op);
    const ToolRun run = run_tool("plan --devices 3 --bytes 12 --dtype int32 --verify --op " + name);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("# " + name + " of 3 replicas"));
    EXPECT_THAT(run.out, HasSubstr("p0 reduce by " + name + " int32 to int32"));
    EXPECT_THAT(run.out, HasSubstr("(b0 " + name + " b1) " + name + " b2"));
    EXPECT_THAT(run.out, HasSubstr("# pack 0 = (r0 " + name + " r1) " + name + " r2\n"));
  }
  EXPECT_THAT(run_tool("plan --devices 2 --bytes 8 --dtype complex64 --op min").err,
              HasSubstr("complex64 has no min; it has sum, mean, product"));
}

TEST(Plan, GoesToTheDeviceThatIsNamed) {
  const ToolRun run = run_tool("plan --devices 2 --bytes 8 --to CPU:5 --reduce-to CPU:3 --verify");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("CPU:5"), HasSubstr("CPU:3"), HasSubstr("destinations 2\n")));
}

TEST(Plan, TakesTheTensorsOfAFile) {
  const ToolRun run = run_tool("plan --devices 4 --shapes bench/shapes/resnet50.txt --verify");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# sum of 4 replicas: 161 tensors, 25557032 float32, 97.5 MiB\n"));
}

TEST(Plan, PrintsOneJsonObject) {
  const ToolRun run = run_tool("plan --devices 3 --bytes 1k --verify --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["algorithm"], "\"one_device\"");
  EXPECT_EQ(lines[0]["order"], "\"canonical\"");
  EXPECT_EQ(lines[0]["verified"], "true");
  EXPECT_EQ(lines[0]["steps"], "1");
  EXPECT_EQ(lines[0]["packs"], R"([{"canonical":true,"elements":256,"expression":"(r0 + r1) + r2"}])");
  EXPECT_THAT(lines[0]["devices"], HasSubstr(R"("bytes_read":3072)"));
  EXPECT_THAT(lines[0]["text"], StartsWith("\"plan one_device\\n"));
  EXPECT_TRUE(lines[0].contains("predicted_us"));
}

// Tags that open and close like brackets: what a browser needs before it shows anything.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.starts_with("/")) {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(Plan, DrawsIntoAFile) {
  const TemporaryFolder folder;
  const ToolRun run = run_tool("plan --devices 4 --bytes 8M --draw '" + folder.file("plan.svg") + "'");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string svg = contents_of(folder.file("plan.svg"));
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, AllOf(HasSubstr("CPU:0"), HasSubstr("CPU:3"), HasSubstr("sum of 4 replicas")));
}

TEST(Plan, AFileThatCannotBeWrittenIsNamed) {
  const ToolRun run = run_tool("plan --devices 4 --bytes 8M --draw /does/not/exist.svg");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "onesum: invalid_argument: cannot write \"/does/not/exist.svg\": No such file or directory\n");
}

TEST(Plan, WhatItPrintsItReadsBack) {
  const TemporaryFolder folder;
  const std::string path = folder.file("plan.txt");
  const ToolRun printed = run_tool("plan --devices 6 --bytes 24 --op mean --dtype int32");
  folder.write("plan.txt", printed.out);
  const ToolRun run =
      run_tool("plan --verify --bytes 24 --file '" + path + "' --draw '" + folder.file("p.svg") + "'");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto without_remarks = [](const std::string& text) {
    std::string kept;
    for (const std::string& line : lines_of(text)) {
      if (!line.starts_with("#")) kept += line + "\n";
    }
    return kept;
  };
  EXPECT_EQ(without_remarks(run.out), without_remarks(printed.out));
  EXPECT_THAT(run.out, AllOf(HasSubstr("# verified"), HasSubstr("bytes read")));
  EXPECT_TRUE(is_well_formed(contents_of(folder.file("p.svg"))));
}

TEST(Plan, AWrongPlanIsShownWithItsFaultAndRefusedByVerify) {
  const TemporaryFolder folder;
  std::string text = run_tool("plan --devices 3 --bytes 24").out;
  text.replace(text.find("(b0 + b1) + b2"), 14, "(b0 + b1) + b1");
  const std::string path = folder.write("wrong.txt", text);
  const ToolRun shown = run_tool("plan --file '" + path + "'");
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, HasSubstr("# not right: pack 0: b3"));
  const ToolRun verified = run_tool("plan --verify --file '" + path + "'");
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_EQ(verified.out, "");
  EXPECT_THAT(verified.err, AllOf(StartsWith("onesum: invalid_argument: "), HasSubstr("lane 0 step 0")));
  EXPECT_THAT(json_lines(run_tool("plan --json --file '" + path + "'").out)[0]["fault"],
              HasSubstr("replica"));
}

TEST(Plan, TextThatIsNoPlanIsRefusedByFileAndLine) {
  const TemporaryFolder folder;
  const std::string path = folder.write("poem.txt", "plan one_device\norder canonical\nroses are red\n");
  const ToolRun run = run_tool("plan --file '" + path + "'");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              AllOf(StartsWith("onesum: invalid_argument: "), HasSubstr("poem.txt"), HasSubstr("line 3")));
}

// Every algorithm over workers is shown, proved and costed; the bytes are those of the textbook.
TEST(Plan, OfAnAllReduceOverWorkers) {
  struct {
    const char* spec;
    const char* order;
    const char* bytes;  // across two workers of two devices, 1 MiB
  } const cases[] = {{"xring", "ring", "12 messages, 3 MiB"},
                     {"nccl/rechd", "canonical", "4 messages, 2 MiB"},
                     {"pscpu/pscpu#2", "canonical", "4 messages, 2 MiB"},
                     {"hierarchical_copy", "canonical", "2 messages, 2 MiB"}};
  for (const auto& one : cases) {
    const ToolRun run =
        run_tool("plan --workers 2 --devices 2 --bytes 1M --verify --spec '" + std::string(one.spec) + "'");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("# sum of 4 replicas on 2 workers of 2 devices: 1 tensor"));
    EXPECT_THAT(run.out, HasSubstr(std::string("# algorithm: ") + one.spec +
                                   "\n# order of additions: " + one.order + "\n"));
    EXPECT_THAT(run.out, HasSubstr(std::string("across workers: ") + one.bytes)) << one.spec;
    EXPECT_THAT(run.out, AllOf(HasSubstr("task:1/CPU:1"), HasSubstr("bytes received"),
                               HasSubstr("# lower bound: "), HasSubstr("# verified: ")));
  }
}

// On two machines of two workers: each sends its sum of a half, and the result of the other one, which is
// what the tensor has; without them it sends twice that.
TEST(Plan, OfWorkersThatShareMachines) {
  const std::string call = "plan --workers 4 --machines 2 --devices 2 --bytes 1M --spec ";
  const ToolRun run = run_tool(call + "nccl/machines --verify");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# sum of 8 replicas on 4 workers of 2 devices on 2 machines: 1 tensor"));
  EXPECT_THAT(run.out, HasSubstr("# order of additions: canonical\n"));
  EXPECT_THAT(run.out,
              HasSubstr("# between machines: 8 messages, 2 MiB, of which one sends 1 MiB at most\n"));
  EXPECT_THAT(run.out, HasSubstr("# verified: "));
  EXPECT_THAT(run_tool(call + "nccl/direct").out, HasSubstr("of which one sends 2 MiB at most\n"));
  EXPECT_THAT(run_tool(call + "nccl/machines --json").out,
              HasSubstr(R"("between_machines":{"messages":8,"bytes":2097152,"most_sent":1048576})"));
  EXPECT_THAT(run_tool(call + "auto --explain").out,
              AllOf(HasSubstr("algorithm: nccl/machines"), HasSubstr("workers share machines: ")));
  EXPECT_THAT(
      run_tool("plan --workers 4 --machines 1 --bytes 1M --spec auto").out,
      AllOf(Not(HasSubstr("# algorithm: nccl/machines")), HasSubstr("# between machines: no message\n")));
  EXPECT_THAT(run_tool("plan --workers 4 --bytes 1M --spec auto").out, Not(HasSubstr("between machines")));
  const ToolRun simulated = run_tool(call + "machines --simulate --json");
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
  auto lines = json_lines(simulated.out);
  EXPECT_EQ(lines.at(0)["predicted_us"],
            json_lines(run_tool(call + "machines --json").out).at(0)["predicted_us"]);
  const TemporaryFolder folder;
  EXPECT_EQ(run_tool(call + "machines --draw '" + folder.file("plan.svg") + "'").exit_code, 0);
  EXPECT_THAT(contents_of(folder.file("plan.svg")), HasSubstr("on 2 machines"));
}

TEST(Plan, RefusesMachinesWithoutWorkersForThem) {
  const auto error_of = [](const std::string& arguments) {
    const ToolRun run = run_tool("plan --bytes 8 " + arguments);
    EXPECT_EQ(run.exit_code, 2);
    return run.err;
  };
  EXPECT_THAT(error_of("--spec auto --workers 4 --machines 5"), HasSubstr("\"5\" is no number from 1 to 4"));
  EXPECT_THAT(error_of("--spec auto --workers 4 --machines 0"), HasSubstr("from 1 to 4"));
  EXPECT_THAT(error_of("--spec auto --machines 2"), HasSubstr("--machines needs --workers W"));
  EXPECT_THAT(error_of("--workers 4 --machines 2"), HasSubstr("--machines needs --spec TEXT"));
}

TEST(Plan, OfGpusIsNative) {
  const std::string call = "plan --workers 2 --devices 2 --bytes 1M --device-type gpu --spec ";
  const ToolRun alone = run_tool(call + "nccl --verify --explain --text --op mean --dtype float16");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("order native, partial sums rounded to 16 bits\n"));
  EXPECT_THAT(alone.out, HasSubstr("  native all_reduce over g0: b2 b3 = b0 b1\n"));
  EXPECT_THAT(alone.out, HasSubstr("# pack 0 = float16(native(r0, r1, r2, r3) / 4)\n"));
  EXPECT_THAT(alone.out, HasSubstr("task:1/GPU:1"));
  EXPECT_THAT(alone.out, HasSubstr("# native collectives: 2 steps, 6 MiB between devices at least\n"));
  EXPECT_THAT(alone.out, HasSubstr("native collectives, which only their library knows\n"));
  EXPECT_THAT(alone.out, HasSubstr("# verified:"));
  for (const char* spec : {"nccl/xring#2", "nccl/pscpu", "nccl/rechd"}) {
    const ToolRun stored = run_tool(call + spec + " --verify");
    EXPECT_EQ(stored.exit_code, 0) << stored.err;
    EXPECT_THAT(stored.out, HasSubstr("  native broadcast over g1: "));
    const ToolRun simulated = run_tool(call + spec + " --simulate --json");
    EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
    EXPECT_THAT(simulated.out, HasSubstr("workers' native sums"));
    EXPECT_THAT(simulated.out, HasSubstr("\"native\":{\"steps\":4,\"bytes\":4194304}"));
  }
  const ToolRun automatic = run_tool(call + "auto --verify");
  EXPECT_THAT(automatic.out, HasSubstr("order canonical\n"));
  const ToolRun one_device = run_tool("plan --bytes 8 --device-type gpu --verify");
  EXPECT_EQ(one_device.exit_code, 0) << one_device.err;
  EXPECT_THAT(one_device.out, HasSubstr("GPU:1"));
}

TEST(Plan, HalvesOfAnAllReduce) {
  for (const char* spec : {"xring", "rechd", "direct"}) {
    for (const char* half : {"reduce_scatter", "all_gather"}) {
      const std::string arguments = std::string(" -n 4 --devices 1 --bytes 4k --verify --spec ") + spec;
      const ToolRun run = run_tool("plan --half " + std::string(half) + arguments);
      ASSERT_EQ(run.exit_code, 0) << run.err;
      EXPECT_THAT(run.out, HasSubstr(std::string("# algorithm: ") + spec + " " + half));
      EXPECT_THAT(run.out, HasSubstr("12 KiB;"));  // half of 2 (W-1) B
    }
  }
}

// What is streamed costs what the stored plan costs, and links are as they are described.
TEST(Plan, OfOtherCollectives) {
  for (const char* op : {"broadcast", "reduce_scatter", "all_gather", "scatter", "all_to_all"}) {
    const std::string arguments = std::string("plan --workers 3 --devices 1 --bytes 4k --op ") + op;
    const ToolRun run = run_tool(arguments + " --verify");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(std::string(op) + " of 3 replicas on 3 workers"));
    EXPECT_THAT(run.out, HasSubstr("verified"));
    EXPECT_THAT(run_tool(arguments + " --explain").out, HasSubstr("order of additions: canonical"));
  }
}

TEST(Plan, SimulatesOnADescribedCluster) {
  const auto seconds = [](const std::string& arguments) {
    const ToolRun run = run_tool("plan --json --devices 1 --bytes 64M " + arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    auto lines = json_lines(run.out);
    return lines.size() == 1 ? std::atof(lines[0]["predicted_us"].c_str()) : -1;
  };
  for (const char* spec : {"xring", "rechd", "direct"}) {
    const std::string of = std::string("-n 8 --spec ") + spec;
    EXPECT_EQ(seconds(of + " --simulate"), seconds(of)) << spec;
  }
  // 2 (W-1)/W B over links of 1 GB/s, with memory that costs nothing.
  const double ring =
      seconds("--spec xring -n 8 --simulate --bandwidth 1GB/s --latency 0us --reduce-speed 1000TB/s");
  EXPECT_NEAR(ring / 1e6, 2 * 7.0 / 8 * 67.108864e6 / 1e9, 0.001);
  EXPECT_GT(seconds("--spec xring -n 8 --simulate --latency 1ms"), 14e3);
  EXPECT_GT(seconds("--spec rechd -n 1024 --simulate"), 0);
}

// Words alone: lines that are no plan, short although there are many packs.
TEST(Plan, ExplainsInWords) {
  const std::string arguments =
      "plan --spec pscpu:64k:auto -n 3 --devices 3 --shapes bench/shapes/resnet50.txt --explain";
  const ToolRun run = run_tool(arguments);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("sum of 9 replicas on 3 workers of 3 devices: 161 tensors"));
  for (const char* part :
       {"\nspec 0 (pscpu, 1 shard, tensors of up to 65536 bytes) takes 115 tensors, 648 KiB\n",
        "\npacks 0 to 114: 1 tensor each, 64 to 16384 elements (256 B to 64 KiB)\n",
        "\npack 115: 46 tensors, 25391104 elements (96.9 MiB)\n", "; the runner-up ",
        "subtrees of the canonical tree", "; no plan takes less than ",
        "\n  /job:worker/replica:0/task:2/device:CPU:0"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
  EXPECT_THAT(run.out,
              AllOf(Not(HasSubstr("#  ")), Not(HasSubstr("lane of rank")), Not(HasSubstr("verified"))));
  EXPECT_LT(lines_of(run.out).size(), 30U);
  EXPECT_EQ(run_tool(arguments + " --verify").out.substr(0, run.out.size()), run.out);
  EXPECT_THAT(run_tool(arguments + " --verify").out.substr(run.out.size()), StartsWith("verified: "));
}

// With the plan's text the words are remarks, so that it can be read back.
TEST(Plan, ExplainsBesideThePlan) {
  const TemporaryFolder folder;
  const std::string arguments = "plan --devices 2 --bytes 8 --explain";
  const ToolRun run = run_tool(arguments + " --text");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\nlane of rank 0\n"), HasSubstr("\n# predicted time: ")));
  for (const std::string& line : lines_of(run_tool(arguments).out))
    EXPECT_THAT(run.out, HasSubstr("# " + line));
  EXPECT_EQ(run_tool("plan --verify --file '" + folder.write("plan.txt", run.out) + "'").exit_code, 0);
  EXPECT_THAT(json_lines(run_tool(arguments + " --json").out).at(0)["explanation"],
              HasSubstr("1 tensor in 1 pack on 2 devices"));
}

// What is said of many packs is said once.
TEST(Plan, GroupsPacksThatAreAlike) {
  const ToolRun run =
      run_tool("plan --spec pscpu:64k:auto -n 3 --devices 1 --shapes bench/shapes/resnet50.txt");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\n# packs 0 to 115 = (r0 + r1) + r2\n"),
                             HasSubstr("\n# packs 0 to 114: 64 to 16384 elements in 1 chunk\n"),
                             HasSubstr("\n# pack 115: 25391104 elements in ")));
}

struct Wrong {
  const char* arguments;
  int exit_code;
  const char* message;
};

class PlanRefuses : public ::testing::TestWithParam<Wrong> {};

TEST_P(PlanRefuses, ByName) {
  const ToolRun run = run_tool(std::string("plan ") + GetParam().arguments);
  EXPECT_EQ(run.exit_code, GetParam().exit_code);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("onesum: "));
  EXPECT_THAT(run.err, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, PlanRefuses,
    ::testing::Values(
        Wrong{"--devices 2", 2, "plan needs --bytes B, --shapes FILE or --file FILE"},
        Wrong{"--devices -3 --bytes 8", 2, "--devices: \"-3\" is no number from 1 to"},
        Wrong{"--devices 2 --bytes 7", 2, "--bytes: 7 bytes are no whole number of float32"},
        Wrong{"--devices 2 --bytes big", 2, "--bytes: \"big\" is no size"},
        Wrong{"--bytes 8 --dtype f33", 2, "--dtype: "},
        Wrong{"--bytes 8 --dtype bool", 1, "invalid_argument: "},
        Wrong{"--bytes 8 --shapes x.txt", 2, "--bytes and --shapes exclude each other"},
        Wrong{"--file a.txt --shapes x.txt", 2, "--file and --shapes exclude each other"},
        Wrong{"--file a.txt --devices 2", 2, "--file and --devices exclude each other"},
        Wrong{"--file a.txt --device-type gpu", 2, "--file and --device-type exclude"},
        Wrong{"--bytes 8 --device-type tpu", 2, "--device-type: \"tpu\" is neither cpu nor gpu"},
        Wrong{"--file /does/not/exist", 1, "cannot read \"/does/not/exist\": No such file"},
        Wrong{"--bytes 8 --to nowhere:1:2:3", 1, "invalid_argument: device \"nowhere:1:2:3\""},
        Wrong{"--bytes 8 --to GPU:0", 1, "GPU"},
        Wrong{"--bytes 8 --dtype int32 --op mean --in-place", 1, "invalid_argument: "},
        Wrong{"--bytes 8 --devices 2 --devices 3", 2, "--devices"},
        Wrong{"--bytes 8 --spec xrng", 2, "did you mean xring?"},
        Wrong{"--bytes 8 --op send_recv", 2, "--op: send_recv is no plan of its own"},
        Wrong{"--bytes 8 --op scatter --in-place", 2, "--op scatter and --in-place exclude each other"},
        Wrong{"--bytes 8 --half all_gather", 2, "--half needs --spec TEXT"},
        Wrong{"--bytes 8 --half all --spec xring", 2, "--half: \"all\" is neither"},
        Wrong{"--bytes 8 --half all_gather --spec auto", 2, "\"auto\" is not one algorithm"},
        Wrong{"--bytes 8 --half all_gather --spec pscpu", 1, "invalid_argument: "},
        Wrong{"--bytes 8 --spec xring --to CPU:0", 2, "--spec and --to exclude each other"},
        Wrong{"--bytes 8 --spec direct -n 600", 1, "a plan of 1200 devices is too large"},
        Wrong{"--bytes 8 --spec direct -n 600 --simulate", 1, "too many messages"},
        Wrong{"--bytes 8 --spec xring --simulate --verify", 2, "is not stored"},
        Wrong{"--bytes 8 --text", 2, "--text needs --explain"},
        Wrong{"--bytes 8 --latency 5", 2, "--latency: \"5\" is no duration"},
        Wrong{"--bytes 8 --bandwidth 5us", 2, "--bandwidth: \"5us\" is no speed"},
        Wrong{"--bytes 8 --numerics quick --spec xring", 2, "--numerics: \"quick\""},
        Wrong{"--bytes 8 --constants /does/not/exist", 1, "\"/does/not/exist\": cannot be read"}));

}  // namespace
}  // namespace onesum::cli
