// Real worker processes for tests: forked, joined through the environment as `onesum run` would set it.
//
// The calling process must not have used the library's threads: a forked child has only one of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace onesum::testing {

struct WorkerEnd {
  std::string text;  // what its body returned; "error CODE: MESSAGE" if that threw
  int signal = 0;    // that killed it; 0: none did
};

using Environment = std::map<std::string, std::string>;
using Body = std::function<std::string(int rank)>;

using EnvironmentOf = std::function<Environment(int rank)>;

// Workers under way.
class Workers {
 public:
  // Each runs `body` with ONESUM_RANK, ONESUM_SIZE and ONESUM_JOB set, and `more`.
  Workers(int size, const Body& body, const Environment& more = {});
  Workers(int size, const Body& body, const EnvironmentOf& more);
  ~Workers();  // kills what is left
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  pid_t process(int rank) const { return workers_[static_cast<std::size_t>(rank)].process; }
  std::vector<WorkerEnd> wait();
  WorkerEnd wait_for(int rank);

 private:
  struct Worker {
    pid_t process = -1;
    int pipe = -1;
  };
  std::vector<Worker> workers_;
};

std::vector<WorkerEnd> run_workers(int size, const Body& body, const Environment& more = {});
std::vector<WorkerEnd> run_workers(int size, const Body& body, const EnvironmentOf& more);

// In a child of its own, without a cluster.
std::string run_alone(const std::function<std::string()>& body);

}  // namespace onesum::testing
