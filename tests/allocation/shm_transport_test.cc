// Beats over shared memory allocate nothing, however the ranks wait.
#include "engine/shm/shm_transport.h"

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "counting.h"

namespace onesum::engine::shm {
namespace {

struct Pair {
  Pair() {
    const Layout layout(2, {.bytes = 4096, .messages = 1, .phases = 2});
    Segment first(0, layout);
    Segment second(1, layout);
    std::vector<Peer> of_first;
    std::vector<Peer> of_second;
    of_first.push_back({PeerSegment(second.descriptor(), 1, layout), make_wake_descriptor()});
    of_second.push_back({PeerSegment(first.descriptor(), 0, layout), make_wake_descriptor()});
    ranks.push_back(
        std::make_unique<ShmTransport>(std::move(first), make_wake_descriptor(), std::move(of_first)));
    ranks.push_back(
        std::make_unique<ShmTransport>(std::move(second), make_wake_descriptor(), std::move(of_second)));
  }
  std::vector<std::unique_ptr<Transport>> ranks;
};

// The receiver is about to sleep when the message comes.
void play(Transport& from, Transport& to, const Beat& beat) {
  const Place outgoing{.peer = 1, .number = 0, .offset = kMessageHeader, .bytes = 100};
  const Place incoming{.peer = 0, .number = 0, .offset = kMessageHeader, .bytes = 100};
  from.begin(beat, {});
  to.begin(beat, {&incoming, 1});
  to.arm();
  if (from.may_send(beat, 1)) from.send(beat, outgoing);
  to.disarm();
  EXPECT_EQ(to.arrival(beat, incoming), Arrival::kHere);
  to.finish(beat);
  from.finish(beat);
}

TEST(ShmTransport, BeatsAllocateNothing) {
  if (!onesum::testing::is_counting_possible()) GTEST_SKIP() << "the sanitizer brings its own allocation";
  const Pair pair;
  const auto allocated = onesum::testing::allocated_by([&] {
    for (std::uint64_t beat = 0; beat < 100; ++beat) play(*pair.ranks[0], *pair.ranks[1], {beat, 1});
  });
  EXPECT_EQ(allocated.calls, 0U);
}

}  // namespace
}  // namespace onesum::engine::shm
