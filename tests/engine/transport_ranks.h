// The ranks of a transport as threads or as processes, for tests.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/transport.h"

namespace onesum::engine::testing {

// Where the ranks of one transport find each other. It is made before there are threads or processes; then
// each rank calls join(), all at the same time, in its own thread or forked process.
class Meeting {
 public:
  Meeting() = default;
  virtual ~Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  virtual std::unique_ptr<Transport> join(int rank) = 0;
};

enum class RanksAre : std::uint8_t { kThreads, kProcesses };

struct TransportUnderTest {
  std::string name;
  RanksAre ranks_are = RanksAre::kThreads;
  std::function<std::unique_ptr<Meeting>(int size, const Limits& limits)> meet;
};
inline void PrintTo(const TransportUnderTest& tested, std::ostream* out) { *out << tested.name; }

inline constexpr int kMostRanks = 16;

// What ranks tell each other beside the transport. Lies in memory that processes share. All atomics are
// sequentially consistent: it is a test.
struct Board {
  std::atomic<std::uint64_t> arrivals{0};  // at meet(), over all times
  std::atomic<bool> has_failure{false};
  std::array<std::atomic<std::uint64_t>, kMostRanks> words{};  // what a script likes
  std::array<std::array<char, 512>, kMostRanks> failures{};    // written by their rank
};

// A small generator, which costs nothing to seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

enum class Waiting : std::uint8_t {
  kSpin,    // asks again and again
  kSleep,   // sleeps as soon as there is nothing
  kEither,  // one or the other, by dice
};

// One rank, as a script sees it.
class Rank {
 public:
  Rank(int number, int size, Transport& transport, Board& board)
      : dice(0xD1CE + static_cast<unsigned>(number)),
        number_(number),
        size_(size),
        transport_(transport),
        board_(board) {}

  int number() const { return number_; }
  int size() const { return size_; }
  Transport& transport() const { return transport_; }
  std::atomic<std::uint64_t>& word(int rank) const { return board_.words.at(static_cast<std::size_t>(rank)); }

  // Makes progress until the condition holds. Throws when nothing wakes a sleeper for long, or another rank
  // has failed.
  void await(const std::function<bool()>& condition, Waiting how, std::string_view what);

  // Returns when every rank is here. Makes progress meanwhile, unless told otherwise.
  void meet(bool makes_progress = true);

  // By dice: no progress for a while.
  void nap_now_and_then();

  // Gives the transport up: nothing but meet() is done afterwards.
  bool quit();
  bool has_quit() const { return has_quit_; }

  // Throws with the rank and the words.
  [[noreturn]] void fail(const std::string& words) const;
  void require(bool is_true, std::string_view words) const {
    if (!is_true) fail(std::string(words));
  }

  Dice dice;

 private:
  void sleep(std::string_view what);
  void leave_if_another_failed() const;

  int number_;
  int size_;
  Transport& transport_;
  Board& board_;
  std::uint64_t meetings_ = 0;
  bool has_quit_ = false;
};

using Script = std::function<void(Rank&)>;

// Runs the script as every rank. At the end each rank flushes and waits for the others, before any transport
// is destroyed. Returns what went wrong; empty: nothing.
std::string run_ranks(const TransportUnderTest& tested, int size, const Limits& limits, const Script& script);

}  // namespace onesum::engine::testing
