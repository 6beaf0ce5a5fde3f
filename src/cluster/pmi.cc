// The protocol: lines of words "key=value", the first of them the command; the launcher answers each line.
//
//   cmd=init pmi_version=1 pmi_subversion=1   cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//   cmd=get_maxes                             cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//   cmd=get_my_kvsname                        cmd=my_kvsname kvsname=NAME
//   cmd=put kvsname=NAME key=K value=V        cmd=put_result rc=0 msg=success
//   cmd=barrier_in                            cmd=barrier_out           (when all workers have come)
//   cmd=get kvsname=NAME key=K                cmd=get_result rc=0 msg=success value=V
//   cmd=finalize                              cmd=finalize_ack
#include "cluster/pmi.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/log.h"
#include "base/text.h"

namespace onesum::cluster {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr auto kPatienceAtTheEnd = std::chrono::seconds(5);

[[noreturn]] void unavailable(const std::string& what) {
  throw Error(ErrorCode::kUnavailable, "the MPI launcher at PMI_FD " + what);
}

// One line of the protocol, in words.
class Line {
 public:
  explicit Line(std::string text) : text_(std::move(text)) {}

  std::optional<std::string_view> find(std::string_view key) const {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t space = std::min(rest.find(' '), rest.size());
      const std::string_view word = rest.substr(0, space);
      if (word.starts_with(key) && word.substr(key.size()).starts_with("="))
        return word.substr(key.size() + 1);
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
    return std::nullopt;
  }

  std::string_view value(std::string_view key) const {
    const auto found = find(key);
    if (!found) unavailable("answered " + quoted(text_) + "; expected " + std::string(key) + "=…");
    return *found;
  }

  std::size_t number(std::string_view key) const {
    const auto parsed = parse_number(value(key), 1 << 30);
    if (!parsed) unavailable("answered " + quoted(text_) + "; expected a number after " + std::string(key));
    return *parsed;
  }

  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

// Lines to and from the launcher.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}

  // Sends a line and awaits the answer, which must be the command `expected`.
  Line ask(const std::string& line, std::string_view expected, Clock::time_point deadline) {
    send(line + "\n", deadline);
    Line answer = receive(line, deadline);
    if (answer.find("cmd") != expected)
      unavailable("answered " + quoted(answer.text()) + " to " + quoted(line) +
                  "; expected cmd=" + std::string(expected));
    const auto result = answer.find("rc");
    if (result && *result != "0") unavailable("refused " + quoted(line) + ": " + quoted(answer.text()));
    return answer;
  }

 private:
  void await(short events, const std::string& line, Clock::time_point deadline) const {
    using std::chrono::milliseconds;
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - now());
      if (left <= milliseconds(0)) {
        throw Error(ErrorCode::kDeadlineExceeded, "the MPI launcher at PMI_FD did not answer " +
                                                      quoted(line) +
                                                      " in time: other workers may not have come");
      }
      pollfd watched{fd_, events, 0};
      const int ready = ::poll(&watched, 1, static_cast<int>(std::min(left, milliseconds(60'000)).count()));
      if (ready > 0) return;
      if (ready < 0 && errno != EINTR) unavailable("cannot be awaited: " + std::string(std::strerror(errno)));
    }
  }

  ssize_t write_some(std::string_view text) const {
    const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 && errno == ENOTSOCK ? ::write(fd_, text.data(), text.size()) : sent;
  }

  static bool is_temporary(int error) noexcept { return error == EINTR || error == EAGAIN; }

  void send(const std::string& line, Clock::time_point deadline) const {
    std::string_view rest = line;
    while (!rest.empty()) {
      await(POLLOUT, line, deadline);
      const ssize_t sent = write_some(rest);
      if (sent < 0 && !is_temporary(errno))
        unavailable("cannot be reached: " + std::string(std::strerror(errno)));
      rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
  }

  Line receive(const std::string& question, Clock::time_point deadline) {
    for (;;) {
      const std::size_t end = received_.find('\n');
      if (end != std::string::npos) {
        Line line(received_.substr(0, end));
        received_.erase(0, end + 1);
        return line;
      }
      if (received_.size() > kLongestLine) unavailable("answered with more than 4096 characters in a line");
      await(POLLIN, question, deadline);
      std::array<char, 1024> bytes;
      const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
      if (got == 0) unavailable("has closed the connection");
      if (got < 0 && !is_temporary(errno))
        unavailable("cannot be read: " + std::string(std::strerror(errno)));
      received_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
  }

  int fd_;
  std::string received_;
};

class PmiBoard final : public AddressBoard {
 public:
  PmiBoard(int fd, MpiInProcess mpi, Clock::time_point deadline)
      : wire_(fd), is_guest_(mpi == MpiInProcess::kInitialized) {
    if (!is_guest_) {
      wire_.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline);
    }
    longest_value_ = wire_.ask("cmd=get_maxes", "maxes", deadline).number("vallen_max");
    store_ = wire_.ask("cmd=get_my_kvsname", "my_kvsname", deadline).value("kvsname");
  }

  // A launcher that hears nothing of the end takes the process for crashed.
  ~PmiBoard() override {
    if (is_guest_) return;
    try {
      wire_.ask("cmd=finalize", "finalize_ack", now() + kPatienceAtTheEnd);
    } catch (const std::exception& error) {
      log(LogLevel::kDebug, error.what());
    }
  }

  void publish(std::string_view text, Clock::time_point deadline) override {
    check_notice(text);
    if (text.size() >= longest_value_)
      unavailable("takes values of less than " + std::to_string(longest_value_) +
                  " characters; the address " + quoted(text) + " is too long");
    wire_.ask("cmd=put kvsname=" + store_ + " key=" + next_notice_key() + " value=" + std::string(text),
              "put_result", deadline);
    wire_.ask("cmd=barrier_in", "barrier_out", deadline);
  }

  std::string lookup(Clock::time_point deadline) override {
    wire_.ask("cmd=barrier_in", "barrier_out", deadline);
    const Line answer =
        wire_.ask("cmd=get kvsname=" + store_ + " key=" + next_notice_key(), "get_result", deadline);
    return std::string(answer.value("value"));
  }

 private:
  Wire wire_;
  bool is_guest_;  // of MPI
  std::size_t longest_value_ = 0;
  std::string store_;
};

}  // namespace

std::unique_ptr<AddressBoard> open_pmi_board(int fd, MpiInProcess mpi, Clock::time_point deadline) {
  return std::make_unique<PmiBoard>(fd, mpi, deadline);
}

}  // namespace onesum::cluster
