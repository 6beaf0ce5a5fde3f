#include "emulated_gpu/meeting.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emulated_gpu/statistics.h"
#include "emulated_gpu/sums.h"
#include "emulated_gpu/wire.h"

namespace onesum::emulated {
namespace {

struct Call {
  Frame frame;
  std::vector<std::byte> brought;
};

struct Member {
  int fd;
  Frame hello{};  // its rank is -1 until it came
  bool has_left = false;
  bool is_dismissed = false;
  bool is_gone = false;
  std::vector<std::byte> in{};
  std::vector<std::byte> out{};
  std::optional<Call> call{};
};

class Meeting {
 public:
  explicit Meeting(int listener) : listener_(listener) {}
  ~Meeting() {
    for (const auto& member : members_) ::close(member->fd);
    if (listener_ >= 0) ::close(listener_);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  void run() {
    while (!is_over()) {
      std::vector<pollfd> polled;
      for (const auto& member : members_) {
        const auto events = static_cast<short>(POLLIN | (member->out.empty() ? 0 : POLLOUT));
        polled.push_back({member->is_gone ? -1 : member->fd, events, 0});
      }
      polled.push_back({listener_, POLLIN, 0});
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;
      for (std::size_t i = 0; i + 1 < polled.size(); ++i) {
        if ((polled[i].revents & POLLOUT) != 0) flush(*members_[i]);
        if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(*members_[i]);
      }
      if (polled.back().revents != 0) accept();
      if (!is_complete_) welcome();
      if (is_complete_) carry_out();
      dismiss();
    }
  }

 private:
  bool is_over() const {
    if (!is_complete_ && !lost_) return false;
    for (const auto& member : members_) {
      if (!member->is_gone) return false;
    }
    return true;
  }

  void accept() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    members_.push_back(std::make_unique<Member>(Member{.fd = fd}));
    members_.back()->hello.rank = -1;
    if (lost_) send(*members_.back(), *lost_);
  }

  void read(Member& member) {
    if (member.is_gone) return;
    std::byte buffer[1 << 16];
    const ssize_t received = ::recv(member.fd, buffer, sizeof(buffer), 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (received <= 0) {
      member.is_gone = true;
      if (!member.has_left) lose(member);
      return;
    }
    member.in.insert(member.in.end(), buffer, buffer + received);
    while (take_frame(member)) {
    }
  }

  bool take_frame(Member& member) {
    Frame frame;
    if (member.call || member.in.size() < sizeof(frame)) return false;
    std::memcpy(&frame, member.in.data(), sizeof(frame));
    const std::size_t bytes = sizeof(frame) + frame.payload_bytes;
    if (member.in.size() < bytes) return false;
    const auto begin = member.in.begin();
    std::vector<std::byte> payload(begin + sizeof(frame), begin + static_cast<std::ptrdiff_t>(bytes));
    member.in.erase(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    if (frame.type == FrameType::kHello) {
      greet(member, frame);
    } else if (frame.type == FrameType::kCollective) {
      member.call = Call{frame, std::move(payload)};
    } else {
      member.has_left = true;
      tell_others_that_left(member);
    }
    return true;
  }

  static Frame left_frame(const Member& member) {
    Frame left = member.hello;
    left.type = FrameType::kLeft;
    return left;
  }

  void tell_others_that_left(const Member& member) {
    for (const auto& other : members_) {
      if (other.get() != &member) send(*other, left_frame(member));
    }
  }

  // Who leaves may end the process of this thread: so not before the others have got everything.
  void dismiss() {
    for (const auto& member : members_) {
      if (!member->is_gone && !member->out.empty()) return;
    }
    for (const auto& member : members_) {
      if (member->has_left && !std::exchange(member->is_dismissed, true)) send(*member, left_frame(*member));
    }
  }

  void greet(Member& member, const Frame& hello) {
    for (const auto& other : members_) {
      if (other->hello.rank < 0) continue;
      if (other->hello.root != hello.root) return refuse("ranks disagree on how many there are");
      if (other->hello.rank == hello.rank) return refuse("two ranks " + std::to_string(hello.rank));
      if (other->hello.process == hello.process && other->hello.device == hello.device) {
        return refuse("ranks " + std::to_string(other->hello.rank) + " and " + std::to_string(hello.rank) +
                      " both use device " + std::to_string(hello.device));
      }
    }
    member.hello = hello;
  }

  void welcome() {
    std::size_t present = 0;
    std::size_t expected = 0;
    for (const auto& member : members_) {
      if (member->hello.rank < 0) continue;
      ++present;
      expected = static_cast<std::size_t>(member->hello.root);
    }
    if (present == 0 || present < expected || lost_) return;
    is_complete_ = true;
    // What is said about them later does not depend on who came first.
    std::ranges::sort(members_, {}, [](const auto& member) { return member->hello.rank; });
    ::close(std::exchange(listener_, -1));
    tell_all({.type = FrameType::kWelcome, .process = getpid()});
  }

  void carry_out() {
    const Call* first = nullptr;
    const Member* absent = nullptr;
    const Member* left = nullptr;
    for (const auto& member : members_) {
      if (member->has_left) left = member.get();
      if (!member->call) {
        absent = member.get();
      } else if (first == nullptr) {
        first = &*member->call;
      }
    }
    if (first == nullptr) return;
    if (left != nullptr) {
      return refuse("a collective while rank " + std::to_string(left->hello.rank) + " has left");
    }
    for (const auto& member : members_) {
      if (member->call && !is_same(first->frame, member->call->frame)) {
        return refuse(text_of(first->frame) + ", but " + text_of(member->call->frame));
      }
    }
    if (absent == nullptr) hand_out(first->frame);
  }

  static bool is_same(const Frame& a, const Frame& b) {
    return a.kind == b.kind && a.dtype == b.dtype && a.root == b.root && a.count == b.count;
  }

  static std::string text_of(const Frame& frame) {
    constexpr const char* kTypes[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                      "uint64", "float16", "float32", "float64", "bfloat16"};
    const auto kind = static_cast<Counted>(frame.kind);
    std::string result = "rank " + std::to_string(frame.rank);
    result += kind == Counted::kAllReduce ? " all-reduces "
              : kind == Counted::kReduce  ? " reduces "
                                          : " broadcasts ";
    result += std::to_string(frame.count) + " elements of " + kTypes[frame.dtype];
    if (kind != Counted::kAllReduce) result += " with root " + std::to_string(frame.root);
    return result;
  }

  void hand_out(const Frame frame) {
    std::vector<std::vector<std::byte>> brought(members_.size());
    for (const auto& member : members_) {
      brought[static_cast<std::size_t>(member->hello.rank)] = std::move(member->call->brought);
      member->call.reset();
    }
    const auto root = static_cast<std::size_t>(frame.root);
    const auto kind = static_cast<Counted>(frame.kind);
    const std::vector<std::byte> result =
        kind == Counted::kBroadcast ? brought[root]
                                    : sum_of(brought, static_cast<ncclDataType_t>(frame.dtype), frame.count);
    for (const auto& member : members_) {
      const bool gets = kind != Counted::kReduce || member->hello.rank == frame.root;
      send(*member, {.type = FrameType::kResult},
           gets ? std::span<const std::byte>(result) : std::span<const std::byte>());
    }
  }

  void lose(const Member& member) {
    lost_ = Frame{.type = FrameType::kLost, .rank = member.hello.rank};
    tell_all(*lost_);
  }

  void refuse(const std::string& text) {
    for (const auto& member : members_) {
      member->call.reset();
      send(*member, {.type = FrameType::kRefused}, std::as_bytes(std::span(text)));
    }
  }

  void tell_all(const Frame& frame) {
    for (const auto& member : members_) send(*member, frame);
  }

  void send(Member& member, Frame frame, std::span<const std::byte> payload = {}) {
    if (member.is_gone) return;
    frame.payload_bytes = payload.size();
    const auto head = std::as_bytes(std::span(&frame, 1));
    member.out.insert(member.out.end(), head.begin(), head.end());
    member.out.insert(member.out.end(), payload.begin(), payload.end());
    flush(member);
  }

  static void flush(Member& member) {
    std::size_t sent = 0;
    while (sent < member.out.size()) {
      const ssize_t now = ::send(member.fd, member.out.data() + sent, member.out.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) break;  // full, or over: then reading says so
      sent += static_cast<std::size_t>(now);
    }
    member.out.erase(member.out.begin(), member.out.begin() + static_cast<std::ptrdiff_t>(sent));
  }

  int listener_;
  bool is_complete_ = false;
  std::optional<Frame> lost_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace

std::string open_meeting() {
  static std::atomic<unsigned> made = 0;  // relaxed: only a number
  const std::string name = "emulated-nccl-" + std::to_string(getpid()) + "-" +
                           std::to_string(made.fetch_add(1, std::memory_order_relaxed)) + "-" +
                           std::to_string(std::random_device()());
  const int listener = listen_at(name);
  if (listener < 0) return "";
  std::thread([listener] { Meeting(listener).run(); }).detach();
  return name;
}

}  // namespace onesum::emulated
