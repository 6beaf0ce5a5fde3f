// A worker that dies, stops or exits at some operation of its transport, and what the others make of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace onesum::testing {

struct Death {
  std::string transport;  // as in ONESUM_TRANSPORT
  std::string spec;
  std::string how;  // as in ONESUM_FAULT
  int rank = 0;
  int call = 0;  // the first is made known to all, later ones are known
  int operation = 0;
  std::optional<int> also{};  // this rank dies there too
};

std::string to_string(const Death& death);

// Four workers make calls, in one of which it happens. Nobody hangs; whatever is returned is right; those who
// are left report the same verdict, which names the dead one, and go on without it; one that was stopped and
// wakes is not let in again. Each is an expectation.
class DeathWatch {
 public:
  // Whether it happened: false if the call had fewer operations, and all went well.
  bool see(const Death& death);

  // Median and worst time from a death to the verdict, in words.
  std::string figures() const;

 private:
  std::vector<double> milliseconds_;          // from death (die, exit) to verdict, of each survivor
  std::vector<double> stopped_milliseconds_;  // from a stop
};

}  // namespace onesum::testing
