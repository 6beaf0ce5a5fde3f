// Which file the NCCL engine takes for its library, and what it does with one that is not to be trusted.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <unistd.h>

#include "gpu/gpus.h"
#include "gpu/nccl_peer.h"
#include "support/waiting.h"

namespace onesum::testing {
namespace {

using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A folder that the dynamic linker looks into first.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("onesum_nccl_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
    std::filesystem::create_symlink(std::filesystem::canonical(emulator().file), path_ / "libcudart.so.13");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void add_nccl(const std::filesystem::path& file) const {
    std::filesystem::create_symlink(std::filesystem::canonical(file), path_ / "libnccl.so.2");
  }
  const std::filesystem::path& path() const { return path_; }
  NcclPeer::Environment environment() const { return {{"LD_LIBRARY_PATH", path_}}; }

 private:
  std::filesystem::path path_;
};

class NcclLibrary : public ::testing::Test {
 protected:
  void SetUp() override { ONESUM_NEEDS_EMULATOR(); }
};

TEST_F(NcclLibrary, SaysWhichItIs) {
  const Folder folder;
  folder.add_nccl(emulator().file);
  NcclPeer::Environment environment = folder.environment();
  environment["ONESUM_LOG"] = "info";
  EXPECT_THAT(NcclPeer::looking(environment).wait(),
              AllOf(HasSubstr("found NCCL 2."), HasSubstr(folder.path().string() + "/lib")));
}

TEST_F(NcclLibrary, TooOld) {
  const Folder folder;
  folder.add_nccl(ONESUM_NCCL_STAND_INS "/old/libnccl.so.2");
  EXPECT_THAT(
      NcclPeer::looking(folder.environment()).wait(),
      AllOf(HasSubstr("error: NCCL cannot be used"), HasSubstr(folder.path().string() + "/libnccl.so.2"),
            HasSubstr("2.17.1"), HasSubstr("expected 2.18.0 or later")));
}

TEST_F(NcclLibrary, NoLibrary) {
  const Folder folder;
  std::ofstream(folder.path() / "libnccl.so.2") << "no library";
  EXPECT_THAT(
      NcclPeer::looking(folder.environment()).wait(),
      AllOf(HasSubstr("error: NCCL cannot be used"), HasSubstr(folder.path().string() + "/libnccl.so.2")));
}

TEST_F(NcclLibrary, Missing) {
  const Folder folder;
  const std::string said = NcclPeer::looking_without_list(folder.environment()).wait();
  if (said.starts_with("found"))
    GTEST_SKIP() << "NCCL is in a folder that the dynamic linker always looks into";
  EXPECT_THAT(said, AllOf(HasSubstr("error: NCCL cannot be used"), HasSubstr("libnccl.so.2"),
                          HasSubstr("No such file")));
}

TEST_F(NcclLibrary, ThatDoesNotReturnIsNotWaitedFor) {
  const HangGuard guard;
  const Folder folder;
  folder.add_nccl(ONESUM_NCCL_STAND_INS "/stuck/libnccl.so.2");
  const auto start = steady_clock::now();
  EXPECT_THAT(NcclPeer::leaving(folder.environment()).wait(),
              AllOf(HasSubstr("NCCL 2."), HasSubstr("on GPU:0: "), HasSubstr("on GPU:1: "),
                    HasSubstr("still waits"), HasSubstr("left")));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace onesum::testing
