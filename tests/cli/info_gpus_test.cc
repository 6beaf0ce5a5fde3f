// What `onesum info` says of GPUs, and of there being none.
#include "cli/info_gpus.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/emulated_gpus.h"
#include "cli/run_tool.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(InfoNetwork, SaysWhichMemoryItReaches) {
  EXPECT_EQ(
      network_text({"1.18.0", {}, {"host", "cuda"}}),
      "1.18.0, reaches memory of kind host, cuda; what lies on GPUs goes through pinned memory of the host");
  EXPECT_EQ(network_text({{}, "no such thing", {}}), "none: no such thing");
  const std::string out = run_tool("info").out;
  EXPECT_THAT(out, ContainsRegex("\nUCX +(1\\.[0-9.]+, reaches memory of kind host|none: )"));
  const std::string json = run_tool("info --json").out;
  EXPECT_THAT(json, ContainsRegex(R"("ucx":.*"memory_types":.*"host"|"why_no_ucx":")"));
}

class InfoGpus : public EmulatedGpus {};

TEST_F(InfoGpus, AreListed) {
  const ToolRun run = run_tool("info", with_gpus(2, "EMULATED_GPU_MEMORY=3221225472"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("GPUs               2\n"),
                             HasSubstr("  GPU:0            Emulated GPU 0, compute capability 9.0, 3 GiB\n"),
                             HasSubstr("  GPU:1            Emulated GPU 1, compute capability 9.0, 3 GiB\n"),
                             ContainsRegex("CUDA +runtime 13\\.[0-9]+, driver for 13\\.[0-9]+, through /"),
                             ContainsRegex("NCCL +2\\.[0-9]+\\.[0-9]+, /.*/lib"),
                             HasSubstr("ONESUM_CUDA_PLUGIN " + cuda_plugin() + "\n")));
}

TEST_F(InfoGpus, AreListedInJson) {
  const ToolRun run = run_tool("info --json", with_gpus(1));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  auto info = json_lines(run.out).at(0);
  EXPECT_EQ(info["gpus"],
            R"([{"compute_capability":"9.0","memory_bytes":1073741824,"name":"Emulated GPU 0"}])");
  EXPECT_THAT(info["cuda"], AllOf(HasSubstr(R"("runtime":"13.)"), HasSubstr(R"("driver":"13.)"),
                                  HasSubstr(R"("plugin":")" + cuda_plugin())));
  EXPECT_THAT(info["nccl"], AllOf(HasSubstr(R"("version":"2.)"), HasSubstr(R"("file":"/)")));
  EXPECT_THAT(info["settings"], HasSubstr(R"("ONESUM_CUDA_PLUGIN":")" + cuda_plugin()));
  EXPECT_EQ(info.count("why_no_gpus"), 0U);
}

TEST_F(InfoGpus, ThatNobodyMaySee) {
  const ToolRun run = run_tool("info", with_gpus(4, "CUDA_VISIBLE_DEVICES=3,1"));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("GPUs               2\n"), HasSubstr("GPU:0            Emulated GPU 3,"),
                    HasSubstr("GPU:1            Emulated GPU 1,"), Not(HasSubstr("GPU:2"))));
}

// A folder with the CUDA runtime and no NCCL that can be used: whoever does not ask for it goes on.
TEST_F(InfoGpus, WithoutNccl) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink(emulated_gpu_folder() + "/libcudart.so.13", folder.file("libcudart.so.13"));
  folder.write("libnccl.so.2", "no library");
  const std::string gpus = with_gpus(1) + "LD_LIBRARY_PATH='" + folder.file("") + "'";
  const ToolRun run = run_tool("info", gpus);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("GPUs               1\n"),
                             ContainsRegex("NCCL +none: NCCL cannot be used: .*libnccl\\.so\\.2")));
  const ToolRun json = run_tool("info --json", gpus);
  EXPECT_THAT(json_lines(json.out).at(0)["why_no_nccl"], HasSubstr("libnccl.so.2"));
}

// ---- none ----

void expect_none(const ToolRun& run, const std::string& reason) {
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(ContainsRegex("GPUs +none: " + reason), Not(HasSubstr("NCCL"))));
}

TEST_F(InfoGpus, NoneAsThereIsNoDriver) {
  const std::string environment = with_gpus(2, "EMULATED_GPU_DRIVER=none");
  expect_none(run_tool("info", environment),
              "CUDA 13\\.[0-9]+, no driver: .* \\(cudaErrorInsufficientDriver\\)");
  auto json = json_lines(run_tool("info --json", environment).out).at(0);
  EXPECT_EQ(json["gpus"], "[]");
  EXPECT_THAT(json["why_no_gpus"], HasSubstr("no driver"));
}

TEST_F(InfoGpus, NoneAsThereIsNoDevice) {
  expect_none(run_tool("info", with_gpus(0)),
              "CUDA 13\\.[0-9]+, driver for 13\\.[0-9]+: .* \\(cudaErrorNoDevice\\)");
}

TEST_F(InfoGpus, NoneAsCudaIsMissing) {
  const std::string linker = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(linker)) GTEST_SKIP() << "the dynamic linker is not " << linker;
  // Without the list of the system's libraries, which may have CUDA's.
  // The linker itself leaves something behind when it cannot open a library, which sanitizers must not mind.
  const ToolRun run = run_tool("--version; ASAN_OPTIONS=detect_leaks=0 ONESUM_CUDA_PLUGIN='" + cuda_plugin() +
                               "' " + linker + " --inhibit-cache '" + tool_path() + "' info");
  if (run.err.find("error while loading shared libraries") != std::string::npos) {
    GTEST_SKIP() << "the tool itself needs that list: " << run.err;
  }
  if (run.out.find("CUDA") != std::string::npos && run.out.find("cannot be opened") == std::string::npos) {
    GTEST_SKIP() << "CUDA is in a folder that the dynamic linker always looks into";
  }
  expect_none(run, cuda_plugin() + " cannot be opened: libcudart\\.so\\.13: .*LD_LIBRARY_PATH");
}

TEST(Info, NoGpusAsThePlugInIsNotWhereItIsSaidToBe) {
  const ToolRun run = run_tool("info", "ONESUM_CUDA_PLUGIN=/does/not/exist.so");
  expect_none(run, "/does/not/exist\\.so: .*No such file");
  EXPECT_THAT(run.out, HasSubstr("ONESUM_CUDA_PLUGIN /does/not/exist.so\n"));
}

TEST(Info, NoGpusAsThePlugInIsNone) {
  const TemporaryFolder folder;
  const std::string file = folder.write("text.so", "no library");
  expect_none(run_tool("info", "ONESUM_CUDA_PLUGIN='" + file + "'"), file + ": ");
}

TEST(Info, NoGpusAsTheKernelsWereNotBuilt) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(tool_path(), folder.file("onesum"));
  expect_none(run_tool("--version; '" + folder.file("onesum") + "' info"),
              "the kernels for GPUs were not built: there is no libonesum_cuda\\.so beside this program");
}

// By whatever name it was called.
TEST_F(InfoGpus, ThePlugInIsBesideTheTool) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("bin"));
  std::filesystem::create_directories(folder.file("lib"));
  std::filesystem::copy_file(tool_path(), folder.file("bin/onesum"));
  std::filesystem::copy_file(cuda_plugin(), folder.file("lib/libonesum_cuda.so"));
  const ToolRun run = run_tool("--version; cd / && LD_LIBRARY_PATH='" + emulated_gpu_folder() +
                               "' EMULATED_GPU_DEVICES=1 PATH='" + folder.file("bin") + "' onesum info");
  EXPECT_THAT(run.out, AllOf(HasSubstr("GPUs               1\n"),
                             HasSubstr("through " + folder.file("lib/libonesum_cuda.so"))));
}

}  // namespace
}  // namespace onesum::cli
