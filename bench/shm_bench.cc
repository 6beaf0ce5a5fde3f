// A beat between processes of one machine: each copies a message for every other into its outbox, sends it,
// waits for the others' and copies them out. Time is that of one whole beat.
#include <cstring>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/shm/shm_transport.h"

namespace {

using namespace onesum;
using namespace onesum::engine;

enum Waiting : std::int64_t { kSpin, kYield, kSleep };

// What all ranks have before they are processes.
struct Meeting {
  Meeting(int size, std::size_t bytes)
      : layout(size, {.bytes = kMessageHeader + bytes, .messages = 1, .phases = 2}) {
    for (int rank = 0; rank < size; ++rank) {
      segments.emplace_back(rank, layout);
      wakes.push_back(shm::make_wake_descriptor());
    }
  }

  // Once in a process.
  shm::ShmTransport join(int rank) {
    std::vector<shm::Peer> peers;
    for (const shm::Segment& segment : segments) {
      const int peer = segment.rank();
      if (peer != rank)
        peers.push_back({shm::PeerSegment(segment.descriptor(), peer, layout), Fd(dup(wake(peer).get()))});
    }
    return {std::move(segments[static_cast<std::size_t>(rank)]), std::move(wake(rank)), std::move(peers)};
  }

  Fd& wake(int rank) { return wakes[static_cast<std::size_t>(rank)]; }

  shm::Layout layout;
  std::vector<shm::Segment> segments;
  std::vector<Fd> wakes;
};

// One rank, pinned to a core: the scheduler may take seconds to find the free ones.
class Rank {
 public:
  Rank(Meeting& meeting, int number, std::size_t bytes, Waiting how)
      : transport_(meeting.join(number)), how_(how), data_(bytes) {
    for (int peer = 0; peer < meeting.layout.size(); ++peer) {
      if (peer != number)
        places_.push_back({.peer = peer, .number = 0, .offset = kMessageHeader, .bytes = bytes});
    }
    sched_getaffinity(0, sizeof cores_, &cores_);
    pin(number % CPU_COUNT(&cores_));
  }
  ~Rank() { sched_setaffinity(0, sizeof cores_, &cores_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The first byte travels with every message. Returns the first byte of the lowest peer's.
  std::byte play(std::byte first) {
    const Beat beat{number_++, 1};
    const auto phase = static_cast<unsigned>(beat.number % transport_.limits().phases);
    transport_.begin(beat, places_);
    data_.front() = first;
    for (const Place& place : places_) {
      wait([&] { return transport_.may_send(beat, place.peer); });
      std::memcpy(transport_.outbox(Box::kPair, place.peer, phase) + place.offset, data_.data(),
                  data_.size());
      transport_.send(beat, place);
    }
    for (const Place& place : places_) {
      wait([&] { return transport_.arrival(beat, place) == Arrival::kHere; });
      std::memcpy(data_.data(), transport_.inbox(Box::kPair, place.peer, phase) + place.offset, data_.size());
      if (&place == &places_.front()) first = data_.front();
    }
    transport_.finish(beat);
    return first;
  }

 private:
  void pin(int number) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &cores_) && number-- == 0) CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }
  template <class Condition>
  void wait(const Condition& condition) {
    while (!condition()) {
      if (how_ == kYield) sched_yield();
      if (how_ == kSleep) sleep();
    }
  }
  void sleep() {
    pollfd event{transport_.event_fd(), POLLIN, 0};
    if (transport_.arm()) poll(&event, 1, -1);
    transport_.disarm();
  }

  shm::ShmTransport transport_;
  Waiting how_;
  std::vector<std::byte> data_;
  std::vector<Place> places_;
  cpu_set_t cores_{};
  std::uint64_t number_ = 0;
};

void beat(benchmark::State& state) {
  const auto size = static_cast<int>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const auto how = static_cast<Waiting>(state.range(2));
  constexpr std::byte kGoOn{0};
  constexpr std::byte kStop{1};
  Meeting meeting(size, bytes);
  std::vector<pid_t> others;
  for (int rank = 1; rank < size; ++rank) {
    others.push_back(fork());
    if (others.back() != 0) continue;
    Rank self(meeting, rank, bytes, how);
    while (self.play(kGoOn) == kGoOn) {
    }
    _exit(0);
  }
  Rank self(meeting, 0, bytes, how);
  for (auto _ : state) self.play(kGoOn);
  self.play(kStop);
  for (const pid_t other : others) waitpid(other, nullptr, 0);
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * (size - 1) * state.iterations());
}

BENCHMARK(beat)
    ->Name("shm/beat")
    ->ArgNames({"ranks", "bytes", "spin_yield_sleep"})
    ->ArgsProduct({{2}, {8, 1024, 128 << 10}, {kSpin, kYield, kSleep}})
    ->ArgsProduct({{4, 8}, {8, 1024}, {kYield, kSleep}})
    ->UseRealTime();

}  // namespace
