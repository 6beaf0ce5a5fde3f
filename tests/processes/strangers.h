// Who does not belong to a job: finds the sockets of its workers and tries to get in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"

namespace onesum::testing {

// Of IPv4, on which the process listens.
std::vector<std::uint16_t> listening_ports(pid_t process);

// Names of the abstract Unix sockets of this machine that begin with `prefix` and are listened at.
std::vector<std::string> listening_names(std::string_view prefix);

// A port of 127.0.0.1 that nobody had a moment ago.
std::uint16_t free_port();

// Not open if nobody takes the connection within 100 ms.
Fd connection_to(std::uint16_t port);
Fd connection_to(const std::string& abstract_name);

void say(const Fd& socket, std::string_view bytes);
// What the other end says until it closes, at most for a second.
std::string hear(const Fd& socket);

// Everything that a stranger might send: nothing, noise, half a greeting of ours, a greeting of UCX.
std::vector<std::string> strange_words();

// The calling process is that user from now on, as if it had been started by him.
void become(uid_t user);

// Descriptors of the process that the calling one can open: /proc/PID/fd, pidfd_getfd(2).
int descriptors_within_reach(pid_t process);

}  // namespace onesum::testing
