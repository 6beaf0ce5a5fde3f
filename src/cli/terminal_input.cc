#include "cli/terminal_input.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <onesum/error.h>

namespace onesum::cli {
namespace {

constexpr int kAskAgainMilliseconds = 200;

bool can_read_now() noexcept {
  pollfd entry{STDIN_FILENO, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

TerminalInput::TerminalInput() {
  if (isatty(STDIN_FILENO) == 0) return;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kResourceExhausted, std::string("no pipe: ") + std::strerror(errno));
  }
  theirs_.reset(ends[0]);
  ours_.reset(ends[1]);
  fcntl(ours_.get(), F_SETFL, O_NONBLOCK);
}

int TerminalInput::reading_end() const noexcept { return theirs_.is_open() ? theirs_.get() : STDIN_FILENO; }

// A process in the background that reads its terminal is stopped.
bool TerminalInput::may_read() const noexcept {
  return typed_.empty() && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int TerminalInput::add_to(std::vector<pollfd>& polled) const {
  if (!ours_.is_open()) return -1;
  if (!typed_.empty()) {
    polled.push_back({ours_.get(), POLLOUT, 0});
  } else if (may_read()) {
    polled.push_back({STDIN_FILENO, POLLIN, 0});
  } else {
    return kAskAgainMilliseconds;
  }
  return -1;
}

void TerminalInput::serve() {
  if (!ours_.is_open()) return;
  if (may_read() && can_read_now()) {
    std::array<char, 4096> bytes;
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count > 0) typed_.assign(bytes.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) ours_.reset();
  }
  if (typed_.empty()) return;
  const ssize_t count = write(ours_.get(), typed_.data(), typed_.size());
  if (count > 0) typed_.erase(0, static_cast<std::size_t>(count));
  if (count < 0 && errno != EINTR && errno != EAGAIN) ours_.reset();  // worker 0 reads no more
}

}  // namespace onesum::cli
