// Real launchers of MPI programs start three workers, which tell each other where worker 0 is. This program
// is its own worker (launched_worker.h).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace onesum::cluster {
namespace {

using ::testing::HasSubstr;

struct LauncherRun {
  int exit_code = -1;
  std::string out;
};

constexpr const char* kOpenMpi = "mpirun.openmpi --allow-run-as-root --oversubscribe";
constexpr const char* kMpich = "mpiexec.hydra";

bool is_installed(const std::string& launcher) {
  const std::string program = launcher.substr(0, launcher.find(' '));
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// `prefix` goes before the worker's command. Leaks and races of the launchers' libraries are not ours.
LauncherRun launch(const std::string& launcher, const std::string& worker, const std::string& prefix = "") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      "ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=ignore_noninstrumented_modules=1 timeout 110 " + launcher +
      " -n 3 " + prefix + " '" + self + "' --launched-worker " + worker + " 2>&1 </dev/null";
  LauncherRun run;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) run.out += static_cast<char>(c);
  const int status = ::pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return run;
}

void expect_all_know(const LauncherRun& run, const std::string& source) {
  EXPECT_EQ(run.exit_code, 0) << run.out;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(run.out,
                HasSubstr("worker " + std::string(rank) + " of 3 (" + source + ", local size 3) knows"));
  }
}

// MPI libraries bring memory hooks of their own, with which sanitizers crash.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLoadMpi = false;
#else
constexpr bool kCanLoadMpi = true;
#endif

class Launchers : public ::testing::Test {
 protected:
  static bool skips(const std::string& launcher) {
    const bool is_missing = !is_installed(launcher);
    if (is_missing) std::fprintf(stderr, "SKIPPED: %s is not installed (tools/setup)\n", launcher.c_str());
    return is_missing;
  }
};

TEST_F(Launchers, OpenMpi) {
  if (skips(kOpenMpi)) GTEST_SKIP();
  expect_all_know(launch(kOpenMpi, "exchange_through_pmix"), "Open MPI (PMIx)");
}

TEST_F(Launchers, PmixWithoutOpenMpisVariables) {
  if (skips(kOpenMpi)) GTEST_SKIP();
  expect_all_know(launch(kOpenMpi, "exchange_through_pmix", "env -u OMPI_COMM_WORLD_RANK"), "PMIx");
}

TEST_F(Launchers, OpenMpiWithAProgramThatUsesMpi) {
  if (!kCanLoadMpi) GTEST_SKIP() << "built with a sanitizer";
  if (skips(kOpenMpi)) GTEST_SKIP();
  expect_all_know(launch(kOpenMpi, "share_pmix_with_mpi"), "Open MPI (PMIx)");
}

TEST_F(Launchers, Mpich) {
  if (skips(kMpich)) GTEST_SKIP();
  expect_all_know(launch(kMpich, "exchange_through_pmi"), "MPICH (PMI)");
}

TEST_F(Launchers, MpichWithAProgramThatUsesMpi) {
  if (!kCanLoadMpi) GTEST_SKIP() << "built with a sanitizer";
  if (skips(kMpich)) GTEST_SKIP();
  expect_all_know(launch(kMpich, "share_pmi_with_mpi"), "MPICH (PMI)");
}

// The deadline is ours: the launcher itself would wait for ever.
TEST_F(Launchers, AWorkerThatNeverPublishesIsNotAwaitedForEver) {
  for (const char* launcher : {kOpenMpi, kMpich}) {
    if (skips(launcher)) GTEST_SKIP();
    const LauncherRun run = launch(launcher, "wait_in_vain");
    EXPECT_THAT(run.out, HasSubstr("has given up"));
  }
}

}  // namespace
}  // namespace onesum::cluster
