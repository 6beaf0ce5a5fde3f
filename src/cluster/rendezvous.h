// How the workers of a job find each other: they meet at worker 0 and leave with everybody's offer and a
// connection to everybody.
//
//   rank r -> worker 0    handshake (handshake.h), then who I am, my settings, where I listen, my offer
//   worker 0              awaits all, compares versions and settings
//   worker 0 -> all       the cards of all: where each listens, and its offer
//   rank r -> rank q < r  a connection of their own, with the same handshake
//   rank r -> worker 0    ready
//   worker 0 -> all       go
//
// Whatever goes wrong, worker 0 tells all that have come, so that every worker throws the same error, which
// says who and what:
//   invalid_argument    a worker differs (version, job, size, a setting), or two have the same rank
//   deadline_exceeded   who is missing
//   aborted             who left while the workers met
//   unavailable         who cannot be reached
// After a difference was found, worker 0 stays for some seconds to tell those that come late. A worker whose
// own secret is wrong is no member: it alone fails, and the others go on waiting.
//
// On one machine everything goes over abstract Unix sockets: no TCP port, no file, and the kernel vouches for
// the user at both ends. Otherwise over TCP, with a secret unless all addresses are loopback ones, and over
// Unix sockets between workers of the same machine.
//
// Listening sockets are closed when the meeting ends: everybody is connected with everybody, so any worker
// can lead afterwards without a new connection, and nothing is left open to strangers.
//
// Blocks the calling thread and starts no other. Nothing outlives the deadline by more than a few seconds,
// except that a name service may take its own time.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/connection.h"
#include "cluster/messages.h"
#include "cluster/place.h"
#include "cluster/secret.h"

namespace onesum::cluster {

struct Meeting {
  int rank = 0;
  int size = 1;
  std::string job;
  // Where worker 0 listens. A host that is a name other than localhost makes it listen on every address.
  MeetingPlace place;
  std::optional<Secret> secret;
  Clock::time_point deadline = Clock::time_point::max();
  // What every worker is to know of this one.
  std::vector<std::byte> offer;
  // Must be the same on all.
  std::string version = {};  // empty: this library's
  std::vector<Setting> settings;
  // Workers with the same text are on the same machine and connect over Unix sockets; empty: not known.
  std::string machine;

  // For launchers that pass addresses on. Worker 0 publishes where it listens, as text, once it does; the
  // others look it up, instead of `place`. Both are optional.
  std::function<void(const std::string& places)> publish;
  std::function<std::string(Clock::time_point deadline)> lookup;
};

struct Met {
  std::vector<std::vector<std::byte>> offers;  // of each rank
  std::vector<Connection> connections;         // to each rank; that to oneself is closed
};

Met meet(Meeting meeting);

}  // namespace onesum::cluster
