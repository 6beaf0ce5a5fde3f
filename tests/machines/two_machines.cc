#include "machines/two_machines.h"

#include <csignal>
#include <functional>
#include <stdexcept>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace onesum::testing {
namespace {

bool has_succeeded(pid_t process) {
  int status = 0;
  return ::waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool runs(const std::string& command) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  return has_succeeded(process);
}

// A process in a network namespace of its own, which is there when this returns; -1: it is not allowed to.
pid_t hold_namespace() {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t process = ::fork();
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWNET) != 0 || ::write(ends[1], "x", 1) != 1) ::_exit(1);
    ::close(ends[0]);
    ::close(ends[1]);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char byte = 0;
  const bool is_there = ::read(ends[0], &byte, 1) == 1;
  ::close(ends[0]);
  if (is_there) return process;
  ::waitpid(process, nullptr, 0);
  return -1;
}

void end(pid_t process) {
  if (process < 0) return;
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

}  // namespace

std::string TwoMachines::obstacle() {
  if (::geteuid() != 0) return "only root can make network namespaces";
  if (!runs("ip -V >/dev/null 2>&1")) return "there is no ip(8); install iproute2";
  const pid_t holder = hold_namespace();
  end(holder);
  return holder < 0 ? "this process may not make network namespaces" : "";
}

TwoMachines::TwoMachines() {
  for (pid_t& holder : holders_) holder = hold_namespace();
  if (holders_[0] > 0 && holders_[1] > 0 && has_cable()) return;
  for (const pid_t holder : holders_) end(holder);
  throw std::runtime_error("two network namespaces with a cable between them cannot be made");
}

// Lays it.
bool TwoMachines::has_cable() const {
  const auto on_both = [&](const std::function<std::string(int)>& command) {
    return run_on(0, command(0)) && run_on(1, command(1));
  };
  return run_on(0, "ip link add cable type veth peer name cable netns " + std::to_string(holders_[1])) &&
         on_both([](int machine) {
           return "ip address add " + address_of(machine) +
                  "/24 dev cable && ip link set lo up && ip link set cable up";
         }) &&
         // The kernel takes its time to say so.
         on_both([](int) -> std::string {
           return "for i in $(seq 200); do ip link show cable | grep -q 'state UP' && exit 0; sleep 0.05; "
                  "done; exit 1";
         });
}

TwoMachines::~TwoMachines() {
  for (const pid_t holder : holders_) end(holder);
}

void TwoMachines::enter(int machine) const {
  const std::string path = "/proc/" + std::to_string(holders_[static_cast<std::size_t>(machine)]) + "/ns/net";
  const Fd space(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space || ::setns(space.get(), CLONE_NEWNET) != 0) throw std::runtime_error("cannot enter " + path);
  // UCX looks for network devices in /sys, which shows those of whoever mounted it.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) {
    throw std::runtime_error("cannot mount /sys of " + path);
  }
}

bool TwoMachines::run_on(int machine, const std::string& command) const {
  const pid_t process = ::fork();
  if (process == 0) {
    enter(machine);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  return has_succeeded(process);
}

void TwoMachines::cut() const {
  if (!run_on(0, "ip link set cable down")) throw std::runtime_error("the cable cannot be cut");
}

bool TwoMachines::limit(const std::string& rate) const {
  const std::string command = "tc qdisc add dev cable root tbf burst 128kb latency 50ms rate " + rate;
  return run_on(0, command) && run_on(1, command);
}

}  // namespace onesum::testing
