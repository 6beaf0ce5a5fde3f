// An invitation: who takes part, which of them this process is, and where worker 0 waits for the others.
//
// A value without identity. environment.h reads it from what a launcher has set; `onesum info --cluster`
// prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <onesum/device.h>

#include "base/host_port.h"

namespace onesum::cluster {

// ---- where worker 0 is ----

// There is only one worker: nobody meets.
struct Nowhere {
  friend bool operator==(const Nowhere&, const Nowhere&) = default;
};

// An abstract Unix socket (the name without its leading zero byte): all workers are on this machine.
struct LocalSocket {
  std::string name;
  friend bool operator==(const LocalSocket&, const LocalSocket&) = default;
};

// Worker 0 chooses an address and publishes it through the launcher (address_board.h).
struct AskPmix {
  friend bool operator==(const AskPmix&, const AskPmix&) = default;
};
struct AskPmi {
  int fd = -1;  // PMI_FD, a connection to the launcher
  friend bool operator==(const AskPmi&, const AskPmi&) = default;
};

using Venue = std::variant<Nowhere, LocalSocket, HostPort, AskPmix, AskPmi>;

// In words, for people.
std::string describe(const Venue& place);

// The socket of a job's workers, for this user: "onesum-UID-JOB"; a long job is replaced by its hash. Another
// user may own a socket of this name, so both ends check who the other is.
LocalSocket local_socket(unsigned uid, std::string_view job);

// ---- the invitation ----

// A variable of the environment and what became of it.
struct Variable {
  std::string name;
  std::string value;    // fit for printing; never a secret
  std::string decided;  // or why it was passed over
  std::string set_by;   // "torchrun", "the user"
  friend bool operator==(const Variable&, const Variable&) = default;
};

struct Invitation {
  int rank = 0;
  int size = 1;
  // Names the job among others: every worker of the job has the same. Empty where only the launcher knows.
  std::string job;
  // Job, replica and task of every worker, in rank order.
  std::vector<Device> workers;
  Venue venue;
  // Of the workers on this machine, where the launcher tells.
  std::optional<int> local_rank;
  std::optional<int> local_size;
  // "onesum run", "TF_CONFIG", "torchrun", "Slurm", "Open MPI (PMIx)", "PMIx", "MPICH (PMI)" or "none"
  std::string source = "none";
  // Every variable that was honoured, and launchers' variables that were seen and not.
  std::vector<Variable> variables;
  std::vector<Variable> passed_over;

  // By the launcher's word.
  bool is_on_one_machine() const noexcept { return size == 1 || local_size == size; }
};

}  // namespace onesum::cluster
