// The launchers that environment.h knows, one source file each (from_<launcher>.cc), and what they share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "cluster/environment.h"
#include "cluster/invitation.h"

namespace onesum::cluster {

// The variables by name. Of entries with the same name the first counts, as for getenv.
class Environment {
 public:
  explicit Environment(std::span<const std::string_view> entries);
  // nullopt also for a variable that is empty.
  std::optional<std::string_view> find(std::string_view name) const;
  // The first of `names` that is set; empty if none is.
  std::string_view first_of(std::span<const std::string_view> names) const;
  // What became of a variable, for an invitation.
  Variable note(std::string_view name, std::string_view decided, std::string_view set_by) const;

 private:
  std::map<std::string_view, std::string_view> values_;
};

struct Context {
  const Environment& environment;
  const Config& config;  // of the same environment
  const Surroundings& surroundings;
  std::vector<Variable>& passed_over;  // for launchers that were recognised and do not answer
};

// Reads the variables of one launcher and notes what each decided.
class LauncherReader {
 public:
  // `evidence` is the variable by which the launcher was recognised.
  LauncherReader(const Environment& environment, std::string launcher, std::string_view evidence);

  std::optional<std::string_view> find(std::string_view name) const { return environment_.find(name); }
  // The variable's text, which `decided` what it says; `expected` is for the message when it is not set.
  std::string_view text(std::string_view name, const std::string& decided, const std::string& expected);
  // A whole number from `least` to `most`.
  std::uint64_t number(std::string_view name, const std::string& decided, std::uint64_t least,
                       std::uint64_t most);
  int count(std::string_view name, const std::string& decided, int least, int most) {
    return static_cast<int>(
        number(name, decided, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
  }
  std::optional<int> count_if_set(std::string_view name, const std::string& decided, int least, int most);

  // Rank and size, and those of this machine where they are set, checked against each other.
  struct Names {
    std::string_view rank, size, local_rank, local_size;
  };
  void read_ranks(Invitation& invitation, const Names& names);

  [[noreturn]] void refuse(std::string_view name, const std::string& expected) const;
  void honour(std::string_view name, const std::string& decided);
  // Puts what was noted into the invitation, with the launcher as its source.
  Invitation finish(Invitation invitation);

 private:
  const Environment& environment_;
  std::string launcher_;
  std::string_view evidence_;
  std::vector<Variable> honoured_;
};

// "environment variable NAME is "value"; expected …"
[[noreturn]] void refuse_variable(std::string_view name, std::string_view value, const std::string& expected);

// Sets where worker 0 is for workers that the launcher says are on one machine: a socket named after the job.
void meet_on_this_machine(Invitation& invitation, const Surroundings& surroundings);

// /job:worker/replica:0/task:0 to task:size-1.
std::vector<Device> worker_names(int size);

// Each answers, or returns nullopt where the launcher has not started this process as a worker. `evidence` is
// the name of a variable that is set.
std::optional<Invitation> invited_by_onesum_run(const Context& context, std::string_view evidence);
std::optional<Invitation> invited_by_tf_config(const Context& context, std::string_view evidence);
std::optional<Invitation> invited_by_torchrun(const Context& context, std::string_view evidence);
std::optional<Invitation> invited_by_slurm(const Context& context, std::string_view evidence);
std::optional<Invitation> invited_by_pmix(const Context& context, std::string_view evidence);
std::optional<Invitation> invited_by_pmi(const Context& context, std::string_view evidence);

}  // namespace onesum::cluster
