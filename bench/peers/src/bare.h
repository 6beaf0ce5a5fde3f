// What the programs of bare exchanges share: ranks that are started from here, a barrier, and times.
//
// Every rank times every call; a sample is the slowest rank; one JSON line per size and way from rank 0.
// BENCH_BUDGET: seconds for each figure.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bare {

constexpr int kMostRanks = 64;
constexpr int kMostReps = 5000;

struct Meeting {  // memory of all ranks
  std::atomic<int> arrived{0};
  int reps = 0;
  double us[kMostRanks][kMostReps] = {};
};

inline int rank, world;
inline bool yields;  // ranks are more than cores
inline Meeting* meeting;
inline int barriers;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  std::_Exit(1);
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T>
T* make_shared() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory");
  return new (memory) T;
}

// `wait_until` takes a condition, and does meanwhile what there is to do.
template <class WaitUntil>
void barrier(WaitUntil wait_until) {
  const int all = ++barriers * world;
  ++meeting->arrived;
  wait_until([all] { return meeting->arrived >= all; });
}

inline void print(const std::string& name, std::size_t bytes) {
  std::vector<double> slowest(static_cast<std::size_t>(meeting->reps));
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    for (int of = 0; of < world; ++of) slowest[i] = std::max(slowest[i], meeting->us[of][i]);
  }
  std::ranges::sort(slowest);
  std::printf("{%s,\"world\":%d,\"bytes\":%zu,\"us_median\":%.2f,\"us_min\":%.2f,\"reps\":%zu}\n",
              name.c_str(), world, bytes, slowest[slowest.size() / 2], slowest[0], slowest.size());
  std::fflush(stdout);
}

template <class Call, class WaitUntil>
void measure(const std::string& name, std::size_t bytes, Call call, WaitUntil wait_until) {
  const char* set = std::getenv("BENCH_BUDGET");
  const double budget = set != nullptr ? std::atof(set) : 0.3;
  barrier(wait_until);
  const int warm = bytes < (1 << 20) ? 20 : 2;
  double begin = 0;
  for (int i = 0; i < 2 * warm; ++i) {  // the first ones are slower
    if (i == warm) begin = now();
    call();
  }
  if (rank == 0) {
    meeting->reps = static_cast<int>(std::clamp(budget * warm / (now() - begin), 5.0, double{kMostReps}));
  }
  barrier(wait_until);
  const int reps = meeting->reps;
  for (int i = 0; i < reps; ++i) {
    begin = now();
    call();
    meeting->us[rank][i] = (now() - begin) * 1e6;
  }
  barrier(wait_until);
  if (rank == 0) print(name, bytes);
  barrier(wait_until);
}

// Of a program that is called with PEER CASE WORLD 4,1024,...: `be_rank` is called in a process of its own
// for each rank and does not return. What ranks share is made before.
template <class BeRank>
int run_ranks(char** arguments, BeRank be_rank) {
  world = std::atoi(arguments[3]);
  require(world >= 2 && world <= kMostRanks, "expected 2 to 64 ranks");
  meeting = make_shared<Meeting>();
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  yields = world > CPU_COUNT(&cores);
  for (rank = 0; rank < world; ++rank) {
    const pid_t process = fork();
    require(process >= 0, "cannot fork");
    if (process != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    be_rank(arguments);
  }
  for (int i = 0; i < world; ++i) {  // the end of one that fails is the end of all
    int status = 0;
    if (wait(&status) < 0 || status != 0) return 1;
  }
  return 0;
}

template <class MeasureSize>
void for_each_size(char** arguments, MeasureSize measure_size) {
  std::stringstream sizes(arguments[4]);
  for (std::string size; std::getline(sizes, size, ',');) {
    measure_size(std::string(arguments[1]), std::string(arguments[2]), std::stoul(size));
  }
}

}  // namespace bare
