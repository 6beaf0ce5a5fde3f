// The sockets at which UCX takes connections, for as long as its worker lives. It takes them from anybody: it
// asks for no secret, and UCX 1.13 ends the process if one that looks like its own says something else.
// Therefore they are shut once all peers are connected.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace onesum::engine::ucx {

// Sockets of this process that listen for TCP connections.
std::set<int> listening_sockets();

class Doors {
 public:
  Doors() = default;
  // Those that were made since `before` and are named in the worker's address, so that none of another thread
  // is taken for one.
  Doors(const std::set<int>& before, const std::string& address);

  // No connection is made from now on; those that there are stay. While the worker lives.
  void shut() const noexcept;

 private:
  std::vector<int> sockets_;  // UCX's
};

}  // namespace onesum::engine::ucx
