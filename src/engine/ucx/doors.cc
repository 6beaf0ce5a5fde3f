#include "engine/ucx/doors.h"

#include <cstdlib>
#include <limits>
#include <memory>

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"

namespace onesum::engine::ucx {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

// In network order, as it stands in an address of UCX; empty for a socket that does not listen.
std::string listening_port(int socket) {
  int listens = 0;
  socklen_t length = sizeof listens;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) return {};
  sockaddr_storage address{};
  length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  in_port_t port = 0;
  if (address.ss_family == AF_INET) port = reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
  if (address.ss_family == AF_INET6) port = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port;
  if (port == 0) return {};
  return {reinterpret_cast<const char*>(&port), sizeof port};
}

}  // namespace

std::set<int> listening_sockets() {
  std::set<int> sockets;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc/self/fd"));
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const int number = std::atoi(entry->d_name);
    if (!listening_port(number).empty()) sockets.insert(number);
  }
  return sockets;
}

Doors::Doors(const std::set<int>& before, const std::string& address) {
  for (const int socket : listening_sockets()) {
    const std::string port = listening_port(socket);
    if (!before.contains(socket) && !port.empty() && address.find(port) != std::string::npos) {
      sockets_.push_back(socket);
    }
  }
}

// By binding them to a network device that does not exist: the kernel refuses whoever knocks, and UCX hears
// nothing of it. It would hear of a socket that is closed.
void Doors::shut() const noexcept {
  const int nowhere = std::numeric_limits<int>::max();
  for (const int socket : sockets_) {
    if (::setsockopt(socket, SOL_SOCKET, SO_BINDTOIFINDEX, &nowhere, sizeof nowhere) == 0) continue;
    log(LogLevel::kWarning,
        "UCX's port stays open to strangers: this kernel does not let it be shut; Linux 5.7 does");
  }
}

}  // namespace onesum::engine::ucx
