// For tests of the rendezvous: several workers as threads, and strangers.
#pragma once

#include <array>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <onesum/error.h>

#include "cluster/handshake.h"
#include "cluster/rendezvous.h"

namespace onesum::testing {

enum class Over { kUnix, kTcp, kTcp6, kTcpAndUnix };
std::string_view to_string(Over over);
inline constexpr std::array kAllKinds = {Over::kUnix, Over::kTcp, Over::kTcp6, Over::kTcpAndUnix};
// Whether this machine has IPv6.
bool is_possible(Over over);

inline constexpr std::string_view kSecret = "a secret of a test, long enough";

std::vector<std::byte> bytes_of(std::string_view text);

// A job with a name of its own; its workers find each other without a fixed port.
class Job {
 public:
  Job(Over over, int size, std::chrono::milliseconds time = std::chrono::seconds(30));

  // What worker `rank` calls meet with: it offers "offer of RANK".
  cluster::Meeting meeting(int rank);
  // Where worker 0 listens, once it does.
  cluster::MeetingPlace place();
  int size() const { return size_; }

  std::optional<cluster::Secret> secret;
  std::chrono::milliseconds patience;

 private:
  struct Board;  // where worker 0 publishes
  Over over_;
  int size_;
  std::string name_;
  std::shared_ptr<Board> board_;
};

// How a meeting ended.
struct Outcome {
  std::optional<cluster::Met> met;
  ErrorCode code = ErrorCode::kInternal;
  std::string text;  // of the error
};

Outcome outcome_of(cluster::Meeting meeting);

// A worker in a thread of its own.
class Worker {
 public:
  explicit Worker(cluster::Meeting meeting);
  Outcome& outcome();  // waits for it

 private:
  Outcome outcome_;
  std::jthread thread_;
};

// All have met: offers are right, and every pair can talk over its connection.
void expect_met(std::vector<Outcome*> outcomes);
void expect_failed(const Outcome& outcome, ErrorCode code, std::initializer_list<std::string_view> parts);

// Somebody who plays a worker badly. All fail the test if they take long.
Fd raw_connection(const cluster::MeetingPlace& place);
void write_raw(const Fd& socket, std::string_view bytes);
// Until the other end closes, or 10 s.
std::string read_all(const Fd& socket);
cluster::Connection shaken_hands(const cluster::MeetingPlace& place, const cluster::Passport& passport);
cluster::Connection accepted_and_shaken(const Fd& listener, const cluster::Passport& passport);

}  // namespace onesum::testing
