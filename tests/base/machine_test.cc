#include "base/machine.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace onesum {
namespace {

namespace fs = std::filesystem;

// A root directory with the files of a cgroup hierarchy, removed at the end.
class FakeRoot {
 public:
  FakeRoot() : path_(fs::temp_directory_path() / ("onesum_machine_test_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(Machine, HasCoresAndMemory) {
  EXPECT_GE(available_cores(), 1U);
  EXPECT_GT(physical_memory_bytes(), std::size_t{16} << 20);
}

TEST(Machine, WithoutACgroupThereIsNoQuota) {
  const FakeRoot root;
  EXPECT_TRUE(std::isinf(cpu_quota(root.path())));
}

TEST(Machine, TheSmallestQuotaOnTheCgroupsPathCounts) {
  for (const std::string mount : {"sys/fs/cgroup/", "sys/fs/cgroup/unified/"}) {
    FakeRoot root;
    root.write("proc/self/cgroup", "4:memory:/elsewhere\n0::/outer/inner\n");
    root.write(mount + "cgroup.controllers", "cpu\n");
    root.write(mount + "outer/cpu.max", "150000 100000\n");
    root.write(mount + "outer/inner/cpu.max", "max 100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota(root.path()), 1.5);
    EXPECT_EQ(available_cores(root.path()), 1U) << "half a core is no core";
    root.write(mount + "outer/inner/cpu.max", "20000 100000\n");
    EXPECT_DOUBLE_EQ(cpu_quota(root.path()), 0.2);
    EXPECT_EQ(available_cores(root.path()), 1U);
  }
}

}  // namespace
}  // namespace onesum
