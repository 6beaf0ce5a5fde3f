// Calls take turns in the order in which they came.
#include "cluster/sequence.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/waiting.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;

using testing::Door;
using testing::expect_error;
using testing::expect_invalid;

constexpr auto kNever = Clock::time_point::max();

class SequenceTest : public ::testing::Test {
 private:
  testing::HangGuard hang_guard_;
};

// Done when the door is.
struct Held {
  explicit Held(Sequence& sequence) {
    sequence.post([this] { door.pass(); });
    door.await_arrivals();
  }
  Door door;
};

TEST_F(SequenceTest, ATurnEndsWithItsObject) {
  Sequence sequence;
  for (int i = 0; i < 3; ++i) {
    const Sequence::Turn turn(sequence, kNever);
    EXPECT_TRUE(sequence.is_inside());
  }
  EXPECT_FALSE(sequence.is_inside());
}

TEST_F(SequenceTest, JobsRunInOrderOnAnotherThread) {
  Sequence sequence;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    sequence.post([&, i] {
      EXPECT_TRUE(sequence.is_inside());
      order.push_back(i);
    });
  }
  const Sequence::Turn turn(sequence, kNever);  // after all of them
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(SequenceTest, ATurnWaitsForJobsAndJobsForATurn) {
  Sequence sequence;
  std::atomic<bool> ran = false;
  {
    const Sequence::Turn turn(sequence, kNever);
    sequence.post([&] { ran = true; });
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(ran);
  }
  const Sequence::Turn turn(sequence, kNever);
  EXPECT_TRUE(ran);
}

TEST_F(SequenceTest, ADeadlineEndsTheWaiting) {
  Sequence sequence;
  Held held(sequence);
  const Clock::time_point start = now();
  expect_error([&] { Sequence::Turn(sequence, now() + 20ms); }, ErrorCode::kDeadlineExceeded,
               {"timeout", "earlier calls"});
  EXPECT_GE(now() - start, 20ms);
  expect_error([&] { Sequence::Turn(sequence, now() - 1s); }, ErrorCode::kDeadlineExceeded, {"timeout"});
  EXPECT_FALSE(sequence.is_inside());
  held.door.open();
  const Sequence::Turn turn(sequence, kNever);
}

// Who gives up leaves the line from its head, its middle and its end.
TEST_F(SequenceTest, ThoseWhoGiveUpLeaveTheOthersInLine) {
  Sequence sequence;
  for (int which = 0; which < 3; ++which) {
    Held held(sequence);
    std::vector<int> order;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        const auto deadline = i == which ? now() + 150ms : kNever;
        try {
          const Sequence::Turn turn(sequence, deadline);
          order.push_back(i);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
          EXPECT_EQ(i, which);
        }
      });
      std::this_thread::sleep_for(30ms);  // so that they line up in this order
    }
    threads[static_cast<std::size_t>(which)].join();
    held.door.open();
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
    const Sequence::Turn turn(sequence, kNever);
    EXPECT_EQ(order.size(), 2U);
  }
}

TEST_F(SequenceTest, ATurnInsideATurnIsRefused) {
  Sequence sequence;
  const Sequence::Turn turn(sequence, kNever);
  expect_invalid([&] { Sequence::Turn(sequence, kNever); }, {"inside", "same cluster"});
  EXPECT_TRUE(sequence.is_inside());
}

TEST_F(SequenceTest, ATurnInsideAJobIsRefused) {
  Sequence sequence;
  Door done;
  sequence.post([&] {
    expect_invalid([&] { Sequence::Turn(sequence, kNever); }, {"inside", "same cluster"});
    sequence.post([&] { done.open(); });  // this one may: nobody waits for it here
  });
  done.pass();
}

TEST_F(SequenceTest, TurnsOfDifferentSequencesNestButNotBack) {
  Sequence a;
  Sequence b;
  const Sequence::Turn first(a, kNever);
  {
    const Sequence::Turn second(b, kNever);
    EXPECT_TRUE(a.is_inside());
    EXPECT_TRUE(b.is_inside());
    expect_invalid([&] { Sequence::Turn(a, kNever); }, {"inside"});
    Sequence c;
    const Sequence::Turn third(c, kNever);
    expect_invalid([&] { Sequence::Turn(a, kNever); }, {"inside"});
    expect_invalid([&] { Sequence::Turn(b, kNever); }, {"inside"});
  }
  EXPECT_FALSE(b.is_inside());
  EXPECT_TRUE(a.is_inside());
  const Sequence::Turn again(b, kNever);
}

TEST_F(SequenceTest, WhatAJobHoldsGoesBeforeTheNextTurn) {
  Sequence sequence;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  sequence.post([held = std::move(held)] {});
  const Sequence::Turn turn(sequence, kNever);
  EXPECT_TRUE(watch.expired());
}

// The last owner of a sequence may be a job of it.
TEST_F(SequenceTest, MayEndOnItsOwnThread) {
  for (int i = 0; i < 50; ++i) {
    auto sequence = std::make_shared<Sequence>();
    const auto door = std::make_shared<Door>();
    Sequence& alias = *sequence;
    alias.post([sequence, door] { door->pass(); });
    sequence.reset();
    door->open();
  }
}

TEST_F(SequenceTest, EndsWithoutEverHavingWorked) {
  for (int i = 0; i < 10; ++i) Sequence();
}

TEST_F(SequenceTest, ManyThreadsOneAtATime) {
  Sequence sequence;
  int inside = 0;  // touched in turns only: a sanitizer sees any overlap
  long calls = 0;
  std::atomic<int> late = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto work = [&] {
          EXPECT_EQ(++inside, 1);
          ++calls;
          --inside;
        };
        if ((i + t) % 3 == 0) {
          sequence.post(work);
        } else {
          try {
            const Sequence::Turn turn(sequence,
                                      (i + t) % 7 == 0 ? now() + std::chrono::microseconds(i % 50) : kNever);
            work();
          } catch (const Error&) {
            ++late;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Sequence::Turn turn(sequence, kNever);
  EXPECT_EQ(calls + late, 6 * 300);
}

}  // namespace
}  // namespace onesum::cluster
