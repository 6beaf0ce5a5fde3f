// Accesses that nothing orders are found when they are enqueued, whatever the streams have done by then.
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

// Two streams, an event, and memory of both kinds; what the body does with them gives violations.
struct Scene {
  DeviceOwner<char> device{1000};
  PinnedOwner<char> pinned{1000};
  StreamOwner first;
  StreamOwner second;
  EventOwner event;

  void fill(const StreamOwner& stream, std::size_t from, std::size_t bytes) const {
    check(cudaMemsetAsync(device.get + from, 0, bytes, stream.get));
  }
  void fetch(const StreamOwner& stream, std::size_t from, std::size_t bytes) const {
    check(cudaMemcpyAsync(pinned.get + from, device.get + from, bytes, cudaMemcpyDeviceToHost, stream.get));
  }
  void end() const {
    check(cudaStreamSynchronize(first.get));
    check(cudaStreamSynchronize(second.get));
  }
};

template <class Act>
Ended play(const Act& act, const Environment& more = {}) {
  return in_child(counting(more), [&] {
    const Scene scene;
    act(scene);
    scene.end();
    return std::to_string(emulated_gpu_violations());
  });
}

void miss_the_wait(const Scene& scene) {
  scene.fill(scene.first, 0, 1000);
  ::usleep(1000);  // as a rule, it is complete by now
  scene.fetch(scene.second, 999, 1);
}

TEST(EmulatedRaces, AMissingWaitIsFoundEveryTime) {
  for (int turn = 0; turn < 20; ++turn) {
    const Ended ended = play(miss_the_wait, {{"EMULATED_GPU_DELAY_US", turn % 2 == 0 ? "0" : "3000"},
                                             {"EMULATED_GPU_SEED", std::to_string(turn)}});
    ASSERT_EQ(ended.text, "1") << "turn " << turn;
  }
}

TEST(EmulatedRaces, ARaceNamesBothOperations) {
  const Ended ended = play(miss_the_wait);
  EXPECT_THAT(ended.errors,
              HasSubstr("emulated GPU: race, nothing orders these two: cudaMemsetAsync (operation 1 of "
                        "stream 1, device 0, called from "));
  EXPECT_THAT(ended.errors, HasSubstr("cudaMemcpyAsync (operation 1 of stream 2, device 0, called from "));
  EXPECT_THAT(ended.errors, HasSubstr("onesum_test_emulated_gpu_self+0x"));
  EXPECT_THAT(ended.errors, HasSubstr(" writes [0x"));
  EXPECT_THAT(ended.errors, HasSubstr(" reads [0x"));
}

TEST(EmulatedRaces, AnEventOrders) {
  const Ended ended = play([](const Scene& scene) {
    scene.fill(scene.first, 0, 1000);
    check(cudaEventRecord(scene.event.get, scene.first.get));
    check(cudaStreamWaitEvent(scene.second.get, scene.event.get, 0));
    scene.fetch(scene.second, 0, 1000);
  });
  EXPECT_EQ(ended.text, "0");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedRaces, AnEventThatWasRecordedTooEarlyDoesNot) {
  const Ended ended = play([](const Scene& scene) {
    check(cudaEventRecord(scene.event.get, scene.first.get));
    scene.fill(scene.first, 0, 1000);
    check(cudaStreamWaitEvent(scene.second.get, scene.event.get, 0));
    scene.fetch(scene.second, 0, 1000);
  });
  EXPECT_EQ(ended.text, "1");
}

TEST(EmulatedRaces, WhatTheHostHasSeenIsOrdered) {
  const Ended ended = play([](const Scene& scene) {
    scene.fill(scene.first, 0, 1000);
    check(cudaStreamSynchronize(scene.first.get));
    scene.fetch(scene.second, 0, 1000);
    check(cudaEventRecord(scene.event.get, scene.second.get));
    while (cudaEventQuery(scene.event.get) != cudaSuccess) {
    }
    scene.fill(scene.first, 0, 1000);
  });
  EXPECT_EQ(ended.text, "0");
}

TEST(EmulatedRaces, OrderIsTransitive) {
  const Ended ended = play([](const Scene& scene) {
    const StreamOwner third(1);
    const EventOwner second_event(1);
    scene.fill(scene.first, 0, 1000);
    check(cudaEventRecord(scene.event.get, scene.first.get));
    check(cudaStreamWaitEvent(third.get, scene.event.get, 0));
    check(cudaEventRecord(second_event.get, third.get));
    check(cudaStreamWaitEvent(scene.second.get, second_event.get, 0));
    scene.fetch(scene.second, 0, 1000);
  });
  EXPECT_EQ(ended.text, "0");
}

TEST(EmulatedRaces, ReadsAndOtherBytesDoNotConflict) {
  const Ended ended = play([](const Scene& scene) {
    scene.fill(scene.first, 0, 500);
    scene.fill(scene.second, 500, 500);
    scene.end();
    scene.fetch(scene.first, 0, 500);
    const PinnedOwner<char> other(1000);
    check(cudaMemcpyAsync(other.get, scene.device.get, 1000, cudaMemcpyDeviceToHost, scene.second.get));
    scene.end();
  });
  EXPECT_EQ(ended.text, "0");
}

TEST(EmulatedRaces, PinnedMemoryHasRacesToo) {
  const Ended ended = play([](const Scene& scene) {
    const DeviceOwner<char> other(1000);
    scene.fetch(scene.first, 0, 1000);
    check(cudaMemcpyAsync(other.get, scene.pinned.get, 1, cudaMemcpyHostToDevice, scene.second.get));
    scene.end();
  });
  EXPECT_EQ(ended.text, "1");
}

TEST(EmulatedRaces, RowsBetweenRowsDoNotConflict) {
  const auto rows = [](const Scene& scene, const StreamOwner& stream, std::size_t from, std::size_t width) {
    const std::vector<char> values(1000);
    check(cudaMemcpy2DAsync(scene.device.get + from, 100, values.data(), width, width, 10,
                            cudaMemcpyHostToDevice, stream.get));
  };
  EXPECT_EQ(play([&](const Scene& scene) {
              rows(scene, scene.first, 0, 40);
              rows(scene, scene.second, 40, 60);
            }).text,
            "0");
  EXPECT_EQ(play([&](const Scene& scene) {
              rows(scene, scene.first, 0, 41);
              rows(scene, scene.second, 40, 60);
            }).text,
            "1");
}

TEST(EmulatedRaces, AnOlderRaceIsNotForgottenForALaterAccess) {
  // The first stream's later access to other bytes must not replace the earlier one.
  const Ended ended = play([](const Scene& scene) {
    scene.fill(scene.first, 0, 100);
    for (std::size_t from = 100; from < 1000; from += 100) scene.fill(scene.first, from, 100);
    scene.fetch(scene.second, 50, 1);
  });
  EXPECT_EQ(ended.text, "1");
}

TEST(EmulatedRaces, ACoveredAccessStillConflicts) {
  const Ended ended = play([](const Scene& scene) {
    scene.fill(scene.first, 0, 100);
    scene.fill(scene.first, 0, 1000);
    check(cudaEventRecord(scene.event.get, scene.first.get));
    scene.fetch(scene.first, 0, 1000);
    check(cudaStreamWaitEvent(scene.second.get, scene.event.get, 0));
    scene.fill(scene.second, 20, 1);  // after the fills, but the fetch may still read
  });
  EXPECT_EQ(ended.text, "1");
}

TEST(EmulatedRaces, FreeingWhatMayBeInUseIsAViolation) {
  const auto free_early = [] {
    void* memory = nullptr;
    check(cudaMalloc(&memory, 10));
    const StreamOwner stream;
    check(cudaMemsetAsync(memory, 0, 10, stream.get));
    check(cudaFree(memory));
    return std::to_string(emulated_gpu_violations()) + " " + emulated_gpu_last_violation();
  };
  EXPECT_THAT(in_child(counting({{"EMULATED_GPU_DELAY_US", "10000"}}), free_early).text,
              HasSubstr("while, as far as the host knows, cudaMemsetAsync (operation 1"));
  EXPECT_EQ(in_child(counting({{"EMULATED_GPU_FREE", "synchronise"}}), free_early).text, "0 ");
}

TEST(EmulatedRaces, ThreadsShareWhatTheyHaveSeenUnlessSetOtherwise) {
  const auto hand_over = [](const Scene& scene) {
    std::thread([&] {
      scene.fill(scene.first, 0, 1000);
      check(cudaStreamSynchronize(scene.first.get));
    }).join();
    scene.fetch(scene.second, 0, 1000);
  };
  EXPECT_EQ(play(hand_over).text, "0");
  EXPECT_EQ(play(hand_over, {{"EMULATED_GPU_HOST", "thread"}}).text, "1");
}

TEST(EmulatedRaces, ALongLifeStaysFast) {
  // Forty thousand operations, of which the detector must forget all but a few.
  const Ended ended = play([](const Scene& scene) {
    for (int turn = 0; turn < 10000; ++turn) {
      scene.fill(scene.first, 0, 1000);
      check(cudaEventRecord(scene.event.get, scene.first.get));
      check(cudaStreamWaitEvent(scene.second.get, scene.event.get, 0));
      scene.fill(scene.second, static_cast<std::size_t>(turn) % 1000, 1);
      check(cudaEventRecord(scene.event.get, scene.second.get));
      check(cudaStreamWaitEvent(scene.first.get, scene.event.get, 0));
    }
  });
  EXPECT_EQ(ended.text, "0");
}

}  // namespace
}  // namespace onesum::testing
