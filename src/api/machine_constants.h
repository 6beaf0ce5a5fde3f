// The constants with which objects of the public classes predict times: those of this machine, if
// `onesum info --measure` has written them down, else the built-in ones.
#pragma once

#include <optional>
#include <string>

#include "plan/cost_constants.h"

namespace onesum::api {

struct MachineConstants {
  plan::CostConstants values;
  std::string source;  // "built in", or the file they come from
};

// $XDG_CACHE_HOME/onesum/machine.json; without that variable ~/.cache/onesum/machine.json. Nothing: neither
// it nor HOME is an absolute path.
std::optional<std::string> machine_file();

// The constants in a file; refuses one that cannot be read or understood, naming it, the key and the remedy.
plan::CostConstants read_constants(const std::string& path);

// Reads the machine's file when it is first called. A file that is wrong makes every call throw the same
// invalid_argument; one that is not there is none. Thread-safe.
MachineConstants constants_in_force();

// For the tool: objects that are made from now on use these.
void use_constants(MachineConstants constants);

}  // namespace onesum::api
