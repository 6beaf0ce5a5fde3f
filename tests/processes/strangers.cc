#include "strangers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cluster/socket.h"

namespace onesum::testing {
namespace {

using namespace std::chrono_literals;

std::string folder_of(pid_t process) { return "/proc/" + std::to_string(process) + "/fd"; }

std::set<std::string> socket_numbers(pid_t process) {
  std::set<std::string> numbers;
  DIR* folder = ::opendir(folder_of(process).c_str());
  if (folder == nullptr) return numbers;
  while (const dirent* entry = ::readdir(folder)) {
    std::array<char, 64> target{};
    const std::string path = folder_of(process) + "/" + entry->d_name;
    if (::readlink(path.c_str(), target.data(), target.size() - 1) <= 0) continue;
    const std::string text = target.data();  // socket:[12345]
    if (text.starts_with("socket:[")) numbers.insert(text.substr(8, text.size() - 9));
  }
  ::closedir(folder);
  return numbers;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

Fd connected(const cluster::SocketAddress& address) {
  cluster::Made made = cluster::start_connecting(address);
  if (!made.socket) return {};
  pollfd polled{made.socket.get(), POLLOUT, 0};
  if (::poll(&polled, 1, 100) != 1 || cluster::finish_connecting(made.socket) != 0) return {};
  return std::move(made.socket);
}

}  // namespace

std::vector<std::uint16_t> listening_ports(pid_t process) {
  const std::set<std::string> own = socket_numbers(process);
  std::vector<std::uint16_t> ports;
  std::ifstream file("/proc/" + std::to_string(process) + "/net/tcp");
  for (std::string line; std::getline(file, line);) {
    // number, address:port, peer, state, queues, timer, retransmits, user, timeout, inode
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 10 || words[3] != "0A" || !own.contains(words[9])) continue;
    ports.push_back(
        static_cast<std::uint16_t>(std::stoul(words[1].substr(words[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

std::vector<std::string> listening_names(std::string_view prefix) {
  std::vector<std::string> names;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    // number, references, protocol, flags (1 << 16: it listens), type, state, inode, name
    const std::vector<std::string> words = words_of(line);
    if (words.size() != 8 || words[3] != "00010000" || !words[7].starts_with("@")) continue;
    const std::string name = words[7].substr(1);
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

std::uint16_t free_port() {
  const cluster::Made listener = cluster::listen_at(*cluster::ip_address("127.0.0.1", 0));
  return cluster::place_of(cluster::local_address(listener.socket)).port;
}

Fd connection_to(std::uint16_t port) { return connected(*cluster::ip_address("127.0.0.1", port)); }
Fd connection_to(const std::string& abstract_name) { return connected(cluster::unix_address(abstract_name)); }

void say(const Fd& socket, std::string_view bytes) {
  // What the other end no longer wants to read is of no interest here.
  if (socket) (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string hear(const Fd& socket) {
  std::string text;
  if (!socket) return text;
  for (const auto end = std::chrono::steady_clock::now() + 1s; std::chrono::steady_clock::now() < end;) {
    pollfd polled{socket.get(), POLLIN, 0};
    if (::poll(&polled, 1, 100) != 1) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<std::string> strange_words() {
  std::mt19937 random(1);
  const auto noise = [&](std::size_t bytes) {
    std::string text(bytes, ' ');
    std::ranges::generate(text, [&] { return static_cast<char>(random()); });
    return text;
  };
  // Begins what one TCP interface of UCX says to another.
  const std::string ucx("\x78\x56\x34\x12\xbe\xba\xfe\xca", 8);
  return {"",
          noise(1),
          noise(80),
          noise(100000),
          "GET / HTTP/1.1\r\nHost: worker\r\n\r\n",
          std::string(64, '\0'),
          std::string("onesum\0\1\1\1", 10),
          std::string("onesum\0\1\1\1", 10) + noise(110),
          ucx,
          ucx + noise(64),
          ucx + noise(4096)};
}

void become(uid_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0) {
    throw std::runtime_error("cannot become user " + std::to_string(user));
  }
  // Who has changed its user is not to be looked into by anybody but root: a worker that was started by this
  // user is.
  ::prctl(PR_SET_DUMPABLE, 1);
}

int descriptors_within_reach(pid_t process) {
  constexpr int kTried = 64;
  int reached = 0;
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  for (int number = 0; number < kTried; ++number) {
    const Fd opened(
        ::open((folder_of(process) + "/" + std::to_string(number)).c_str(), O_RDONLY | O_CLOEXEC));
    const Fd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, handle.get(), number, 0)));
    if (opened || taken) ++reached;
  }
  return reached;
}

}  // namespace onesum::testing
