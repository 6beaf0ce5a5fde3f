#include "engine/transport_ranks.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/waiting.h"

namespace onesum::engine::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Nothing on a machine that works takes so long; a wake-up that was lost never comes.
constexpr auto kLostAfter = std::chrono::seconds(20);
constexpr unsigned kHangSeconds = 100;

class AnotherRankFailed : public std::exception {};

// A board in memory that forked processes share.
class SharedBoard {
 public:
  SharedBoard()
      : memory_(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for the board");
    board_ = new (memory_) Board;
  }
  ~SharedBoard() {
    board_->~Board();
    munmap(memory_, sizeof(Board));
  }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  Board& operator*() const { return *board_; }

 private:
  void* memory_;
  Board* board_ = nullptr;
};

void report(Board& board, int rank, const std::string& words) {
  auto& place = board.failures.at(static_cast<std::size_t>(rank));
  words.copy(place.data(), place.size() - 1);
  board.has_failure = true;
}

void follow(const Script& script, Rank& self) {
  script(self);
  if (!self.has_quit())
    self.await([&] { return self.transport().is_flushed(); }, Waiting::kSpin,
               "everything sent to be flushed");
  self.meet();
}

void be_rank(Meeting& meeting, int rank, int size, const Script& script, Board& board) noexcept {
  try {
    const std::unique_ptr<Transport> transport = meeting.join(rank);
    Rank self(rank, size, *transport, board);
    try {
      follow(script, self);
    } catch (...) {
      transport->quit();
      throw;
    }
  } catch (const AnotherRankFailed&) {  // NOLINT(bugprone-empty-catch): that one reports
  } catch (const std::exception& error) {
    report(board, rank, error.what());
  }
}

void run_threads(Meeting& meeting, int size, const Script& script, Board& board) {
  const onesum::testing::HangGuard guard{std::chrono::seconds(kHangSeconds)};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] { be_rank(meeting, rank, size, script, board); });
  for (std::thread& rank : ranks) rank.join();
}

pid_t fork_rank(Meeting& meeting, int rank, int size, const Script& script, Board& board) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(kHangSeconds);
  be_rank(meeting, rank, size, script, board);
  _exit(0);
}

// True when the process has ended.
bool has_ended(pid_t child, int rank, Board& board) {
  int status = 0;
  const pid_t ended = waitpid(child, &status, WNOHANG);
  if (ended == 0) return false;
  if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    report(board, rank, "rank " + std::to_string(rank) + " died, wait status " + std::to_string(status));
  return true;
}

void run_processes(Meeting& meeting, int size, const Script& script, Board& board) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(fork_rank(meeting, rank, size, script, board));
    if (children.back() < 0) report(board, rank, std::string("cannot fork: ") + std::strerror(errno));
  }
  for (bool is_over = false; !is_over;) {
    is_over = true;
    for (int rank = 0; rank < size; ++rank) {
      pid_t& child = children[static_cast<std::size_t>(rank)];
      if (child > 0 && has_ended(child, rank, board)) child = -1;
      is_over = is_over && child <= 0;
    }
    if (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

void Rank::fail(const std::string& words) const {
  throw std::runtime_error("rank " + std::to_string(number_) + " of " + std::to_string(size_) + ": " + words);
}

void Rank::leave_if_another_failed() const {
  if (board_.has_failure) throw AnotherRankFailed();
}

void Rank::await(const std::function<bool()>& condition, Waiting how, std::string_view what) {
  const auto begin = Clock::now();
  for (std::uint64_t turn = 0;; ++turn) {
    transport_.progress();
    if (condition()) return;
    const bool sleeps = how == Waiting::kSleep || (how == Waiting::kEither && dice.below(8) == 0);
    if (sleeps) {
      sleep(what);
    } else {
      sched_yield();
    }
    if (turn % 64 != 0) continue;
    leave_if_another_failed();
    if (Clock::now() - begin > 3 * kLostAfter) fail("waited too long for " + std::string(what));
  }
}

void Rank::sleep(std::string_view what) {
  const auto begin = Clock::now();
  pollfd event{transport_.event_fd(), POLLIN, 0};
  bool is_awake = !transport_.arm();
  while (!is_awake) {
    is_awake = poll(&event, 1, 50) != 0;  // an interruption is as good as an event
    leave_if_another_failed();
    if (!is_awake && Clock::now() - begin > kLostAfter)
      fail("nobody woke it from waiting for " + std::string(what));
  }
  transport_.disarm();
}

void Rank::nap_now_and_then() {
  if (dice.below(40) == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice.below(800)));
}

bool Rank::quit() {
  has_quit_ = true;
  return transport_.quit();
}

void Rank::meet(bool makes_progress) {
  const std::uint64_t all = ++meetings_ * static_cast<std::uint64_t>(size_);
  ++board_.arrivals;
  while (board_.arrivals < all) {
    if (makes_progress && !has_quit_) transport_.progress();
    leave_if_another_failed();
    sched_yield();
  }
}

std::string run_ranks(const TransportUnderTest& tested, int size, const Limits& limits,
                      const Script& script) {
  if (size > kMostRanks) return "more ranks than a board has room for";
  const SharedBoard board;
  const std::unique_ptr<Meeting> meeting = tested.meet(size, limits);
  const auto run = tested.ranks_are == RanksAre::kThreads ? run_threads : run_processes;
  run(*meeting, size, script, *board);
  std::string failures;
  for (const auto& failure : (*board).failures) {
    if (failure.front() != '\0') failures.append(failure.data()).append("\n");
  }
  return failures;
}

}  // namespace onesum::engine::testing
