#include "supervisor.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counts.h"
#include "worker.h"

namespace onesum::soak {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What counts as a failure of a worker that was stopped, and what counts as a hang: shrinking after a stop
// takes that long, and the machine may be busy.
constexpr const char* kProgressTimeout = "1.5";
constexpr std::chrono::seconds kHang{40};
constexpr milliseconds kTick{20};

struct Faults {
  int jobs = 0;
  int kills = 0;
  int stops = 0;
  int hangs = 0;
};

class Job {
 public:
  Job(int size, unsigned seed, const std::string& transport, int number, Counts& counts) : counts_(counts) {
    for (int rank = 0; rank < size; ++rank) {
      counts.progress[static_cast<std::size_t>(rank)].store(0);
      std::fflush(nullptr);
      const pid_t child = ::fork();
      if (child == 0) be_worker(rank, size, seed, transport, number);
      workers_.push_back({child});
    }
  }

  ~Job() {
    for (Worker& worker : workers_) {
      if (worker.has_ended) continue;
      ::kill(worker.process, SIGKILL);
      ::waitpid(worker.process, nullptr, 0);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int left() const {
    int count = 0;
    for (const Worker& worker : workers_) count += worker.has_ended ? 0 : 1;
    return count;
  }

  // Notices who has ended, wakes who has slept enough, and says who hangs.
  bool look_after() {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      if (worker.has_ended) continue;
      worker.has_ended = ::waitpid(worker.process, nullptr, WNOHANG) == worker.process;
      if (worker.has_ended) continue;
      if (worker.is_stopped && Clock::now() >= worker.wakes_at) {
        ::kill(worker.process, SIGCONT);
        worker.is_stopped = false;
        worker.progressed_at = Clock::now();
      }
      const std::uint64_t progress = counts_.progress[rank].load();
      if (progress != worker.progress || worker.is_stopped) worker.progressed_at = Clock::now();
      worker.progress = progress;
      if (Clock::now() - worker.progressed_at < kHang) continue;
      std::printf("worker %zu hangs\n", rank);
      return false;
    }
    return true;
  }

  void kill_one(std::mt19937& random) { ::kill(any(random).process, SIGKILL); }

  void stop_one(std::mt19937& random) {
    Worker& worker = any(random);
    if (worker.is_stopped) return;
    ::kill(worker.process, SIGSTOP);
    worker.is_stopped = true;
    worker.wakes_at = Clock::now() + milliseconds(random() % 4000);
  }

 private:
  struct Worker {
    pid_t process = -1;
    bool has_ended = false;
    bool is_stopped = false;
    Clock::time_point wakes_at{};
    std::uint64_t progress = 0;
    Clock::time_point progressed_at = Clock::now();
  };

  [[noreturn]] void be_worker(int rank, int size, unsigned seed, const std::string& transport, int number) {
    ::setenv("ONESUM_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("ONESUM_SIZE", std::to_string(size).c_str(), 1);
    ::setenv("ONESUM_JOB", ("soak-" + std::to_string(::getppid()) + "-" + std::to_string(number)).c_str(), 1);
    ::setenv("ONESUM_TRANSPORT", transport.c_str(), 1);
    ::setenv("ONESUM_PROGRESS_TIMEOUT", kProgressTimeout, 1);
    ::setenv("ONESUM_THREADS", "1", 1);
    ::setenv("ONESUM_LOG", "error", 0);
    work(rank, seed, counts_);
    std::fflush(nullptr);
    ::_exit(0);
  }

  // There is one.
  Worker& any(std::mt19937& random) {
    for (;;) {
      Worker& worker = workers_[random() % workers_.size()];
      if (!worker.has_ended) return worker;
    }
  }

  std::vector<Worker> workers_;
  Counts& counts_;
};

void run_job(Job& job, std::mt19937& random, Clock::time_point end, Faults& faults) {
  Clock::time_point next_fault = Clock::now() + milliseconds(200 + random() % 2000);
  while (job.left() > 1 && Clock::now() < end) {
    std::this_thread::sleep_for(kTick);
    if (!job.look_after()) {
      ++faults.hangs;
      return;
    }
    if (Clock::now() < next_fault || job.left() < 2) continue;
    next_fault = Clock::now() + milliseconds(random() % 3000);
    if (random() % 2 == 0) {
      job.kill_one(random);
      ++faults.kills;
    } else {
      job.stop_one(random);
      ++faults.stops;
    }
  }
}

}  // namespace

bool supervise(std::chrono::seconds time, unsigned seed) {
  void* const memory =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  Counts& counts = *new (memory) Counts;
  std::mt19937 random(seed);
  Faults faults;
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end && faults.hangs == 0) {
    const int size = 2 + static_cast<int>(random() % (kMostWorkers - 1));
    const std::string transport = random() % 2 == 0 ? "shm" : "tcp";
    Job job(size, static_cast<unsigned>(random()), transport, faults.jobs++, counts);
    run_job(job, random, end, faults);
  }
  std::printf(
      "%d jobs, %d kills, %d stops; %llu calls, %llu failed by a fault; %llu went on, %llu expelled, "
      "%llu cut off\n",
      faults.jobs, faults.kills, faults.stops, static_cast<unsigned long long>(counts.calls),
      static_cast<unsigned long long>(counts.verdicts), static_cast<unsigned long long>(counts.shrinks),
      static_cast<unsigned long long>(counts.expelled), static_cast<unsigned long long>(counts.cut_off));
  std::printf("%llu wrong results, %d hangs, %llu unexpected errors\n",
              static_cast<unsigned long long>(counts.wrong), faults.hangs,
              static_cast<unsigned long long>(counts.unexpected));
  return counts.calls > 0 && counts.wrong == 0 && faults.hangs == 0 && counts.unexpected == 0;
}

}  // namespace onesum::soak
