#include "gpu/nccl_peer.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/native_cases.h"

namespace onesum::testing {
namespace {

using engine::NativeEngine;

std::string to_hex(const NativeEngine::Id& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : id) {
    text += kDigits[std::to_integer<unsigned>(byte) / 16];
    text += kDigits[std::to_integer<unsigned>(byte) % 16];
  }
  return text;
}

NativeEngine::Id id_of(std::string_view hex) {
  NativeEngine::Id id;
  for (std::size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<std::byte>(std::stoi(std::string(hex.substr(2 * i, 2)), nullptr, 16));
  }
  return id;
}

int number(std::string_view text) { return std::stoi(std::string(text)); }

// join what id size device rank device rank …
void join(const std::vector<std::string_view>& arguments) {
  const int size = number(arguments[3]);
  std::vector<NativeEngine::Member> members;
  for (std::size_t i = 4; i + 1 < arguments.size(); i += 2) {
    members.push_back({number(arguments[i]), number(arguments[i + 1])});
  }
  const auto platform = open_platform();
  const auto communicator = platform->native().join(id_of(arguments[2]), size, members);
  await_ready(*communicator);
  if (arguments[1] == "idle") {
    for (;;) pause();
  }
  std::string faults;
  for (const NativeCase& what : cases_between_processes()) {
    faults += run_case(*platform, *communicator, size, members, what);
  }
  std::fputs(faults.empty() ? "all right" : faults.c_str(), stdout);
}

void leave() {
  const auto platform = open_platform();
  NativeEngine& engine = platform->native();
  for (const NativeEngine::Member member : {NativeEngine::Member{0, 0}, NativeEngine::Member{1, 0}}) {
    const auto communicator = engine.join(engine.make_id(), 1, {&member, 1});
    await_ready(*communicator);
    if (member.device == 0) communicator->abort();
  }
  std::fputs("left", stdout);
}

// The dynamic linker, as a program.
std::string linker() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string name = std::filesystem::path(info->dlpi_name).filename();
        if (!name.starts_with("ld-")) return 0;
        *static_cast<std::string*>(result) = info->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

std::string self() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::vector<std::string> command_to_join(const char* what, const NativeEngine::Id& id, int size,
                                         std::span<const NativeEngine::Member> members) {
  std::vector<std::string> command{self(),     std::string(kNcclPeer), "join", what,
                                   to_hex(id), std::to_string(size)};
  for (const NativeEngine::Member& member : members) {
    command.push_back(std::to_string(member.device));
    command.push_back(std::to_string(member.rank));
  }
  return command;
}

std::vector<std::string> environment_with(const NcclPeer::Environment& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(std::string(name).append("=").append(value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

int run_nccl_peer(const std::vector<std::string_view>& arguments) {
  try {
    if (arguments[0] == "join") {
      join(arguments);
    } else if (arguments[0] == "leave") {
      leave();
    } else {
      std::printf("found %s", open_platform()->native().description().c_str());
    }
  } catch (const std::exception& error) {
    std::printf("error: %s", error.what());
  }
  return EXIT_SUCCESS;
}

NcclPeer::NcclPeer(std::vector<std::string> command, const Environment& more) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<std::string> environment = environment_with(more);
  const int error = posix_spawn(&process_, command[0].c_str(), &actions, nullptr, pointers(command).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  output_ = ends[0];
  if (error != 0) throw std::runtime_error(command[0] + ": " + std::strerror(error));
}

NcclPeer::NcclPeer(NcclPeer&& other) noexcept
    : process_(std::exchange(other.process_, -1)), output_(std::exchange(other.output_, -1)) {}

NcclPeer::~NcclPeer() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
}

NcclPeer NcclPeer::looking(const Environment& more) {
  return {{self(), std::string(kNcclPeer), "look"}, more};
}

NcclPeer NcclPeer::looking_without_list(const Environment& more) {
  return {{linker(), "--inhibit-cache", self(), std::string(kNcclPeer), "look"}, more};
}

NcclPeer NcclPeer::leaving(const Environment& more) {
  return {{self(), std::string(kNcclPeer), "leave"}, more};
}

NcclPeer NcclPeer::working(const NativeEngine::Id& id, int size,
                           std::span<const NativeEngine::Member> members) {
  return {command_to_join("work", id, size, members), {{"EMULATED_GPU_LEAKS", "fail"}}};
}

NcclPeer NcclPeer::idle(const NativeEngine::Id& id, int size, std::span<const NativeEngine::Member> members) {
  return {command_to_join("idle", id, size, members), {}};
}

void NcclPeer::signal(int number_of_signal) const { kill(process_, number_of_signal); }

std::string NcclPeer::wait() {
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(output_, buffer, sizeof(buffer))) > 0;) {
    said.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
    said += " (status " + std::to_string(status) + ")";
  return said;
}

}  // namespace onesum::testing
