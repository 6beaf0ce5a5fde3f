// Two machines on one: network namespaces with an address each, joined by a cable (veth), for tests.
//
// Needs root and iproute2. Everything is gone with the object, or with the process.
#pragma once

#include <array>
#include <string>

#include <sys/types.h>

namespace onesum::testing {

class TwoMachines {
 public:
  // Why there cannot be any here; empty: there can.
  static std::string obstacle();

  TwoMachines();  // throws std::runtime_error
  ~TwoMachines();
  TwoMachines(const TwoMachines&) = delete;
  TwoMachines& operator=(const TwoMachines&) = delete;

  // The calling process is on that machine from now on; it has one thread.
  void enter(int machine) const;
  static std::string address_of(int machine) { return machine == 0 ? "10.77.0.1" : "10.77.0.2"; }

  // Nothing passes any more, and nobody is told.
  void cut() const;
  // From now on no more than this in either direction, as in tc(8): "1gbit". False: this kernel cannot.
  bool limit(const std::string& rate) const;

 private:
  bool has_cable() const;
  bool run_on(int machine, const std::string& command) const;

  std::array<pid_t, 2> holders_{-1, -1};  // processes that keep the namespaces
};

}  // namespace onesum::testing
