#include "engine/transport_conformance.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

#include "engine/transport_player.h"

namespace onesum::engine::testing {

// This file is in programs that instantiate none, too.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportConformance);

namespace {

// With ThreadSanitizer a byte costs some fifty times as much.
#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlowness = 10;
#else
constexpr std::uint64_t kSlowness = 1;
#endif

}  // namespace

Script all_to_all(std::uint64_t beats, Waiting how) {
  return [beats, how](Rank& self) {
    Player player(self, how);
    for (std::uint64_t beat = 0; beat < beats; ++beat) {
      std::vector<Place> outgoing = places_of(self, beat, true);
      for (std::size_t i = outgoing.size(); i > 1; --i)
        std::swap(outgoing[i - 1], outgoing[self.dice.below(i)]);
      self.nap_now_and_then();
      player.play({beat, beat * 7 + 1}, outgoing, places_of(self, beat, false));
    }
  };
}

namespace {

// As all_to_all, with several beats under way, and tiny and common messages where the transport has them.
Script overlapped(std::uint64_t beats, unsigned window, Waiting how) {
  return [beats, window, how](Rank& self) {
    Player player(self, how);
    const auto made_tiny = [&](std::vector<Place> places) {
      for (Place& place : places) {
        const NearBoxes near = self.transport().near_boxes(place.peer);
        if (near.tiny_bytes == 0 || place.bytes > near.tiny_bytes) continue;
        place.offset = place.number * near.tiny_stride;
        place.box = Box::kTiny;
      }
      return places;
    };
    std::uint64_t number = 0;
    player.play_overlapped(window, [&](Player::Underway& next) {
      if (number == beats) return false;
      next.beat = {number, number * 7 + 1, number + 1 - std::min<std::uint64_t>(number + 1, window)};
      next.outgoing = made_tiny(places_of(self, number, true));
      next.incoming = made_tiny(places_of(self, number, false));
      // Now and then none: others must wait for ranks that have nothing to do with it.
      if (number % 7 < 5) {
        next.outgoing = with_common(self, number, true, std::move(next.outgoing));
        next.incoming = with_common(self, number, false, std::move(next.incoming));
      }
      self.nap_now_and_then();
      ++number;
      return true;
    });
  };
}

}  // namespace

Script always_asleep(std::uint64_t beats) {
  return [beats](Rank& self) {
    Player player(self, Waiting::kSleep);
    const std::vector<Place> place = {small_place(1 - self.number())};
    for (std::uint64_t number = 0; number < beats; ++number) {
      const Beat beat{number, 5};
      if (number % 2 == 0) {
        player.play(beat, place, place);
        continue;
      }
      self.transport().begin(beat, place);
      const auto send = [&] { return player.try_send(beat, place[0]); };
      const auto receive = [&] { return player.try_receive(beat, place[0]); };
      if (self.number() == 0) self.await(send, Waiting::kSleep, "leave to send");
      self.await(receive, Waiting::kSleep, "beat " + std::to_string(number));
      if (self.number() == 1) self.await(send, Waiting::kSleep, "leave to answer");
      self.transport().finish(beat);
    }
  };
}

TEST_P(TransportConformance, CopiesAreAlignedDistinctAndStay) {
  EXPECT_EQ(
      run(3, {.bytes = 4096, .messages = 5, .phases = 4},
          [](Rank& self) {
            Transport& transport = self.transport();
            self.require(transport.limits() == Limits{.bytes = 4096, .messages = 5, .phases = 4}, "limits");
            std::vector<const std::byte*> boxes;
            for (int peer = 0; peer < self.size(); ++peer) {
              for (unsigned phase = 0; phase < 4 && peer != self.number(); ++phase) {
                boxes.push_back(transport.outbox(Box::kPair, peer, phase));
                boxes.push_back(transport.inbox(Box::kPair, peer, phase));
                self.require(transport.outbox(Box::kPair, peer, phase) == boxes[boxes.size() - 2],
                             "outbox moved");
              }
            }
            std::sort(boxes.begin(), boxes.end());
            for (std::size_t i = 0; i < boxes.size(); ++i) {
              self.require(reinterpret_cast<std::uintptr_t>(boxes[i]) % kMessageAlignment == 0, "alignment");
              self.require(i == 0 || boxes[i] - boxes[i - 1] >= 4096, "copies overlap");
            }
          }),
      "");
}

TEST_P(TransportConformance, EveryByteArrivesWhateverTheSizesAndTheWayOfWaiting) {
  for (const int size : {1, 2, 3, 5, 8}) {
    for (const Waiting how : {Waiting::kSpin, Waiting::kSleep, Waiting::kEither})
      ASSERT_EQ(run(size, kSmallLimits, all_to_all((size < 5 ? 400 : 120) / kSlowness, how)), "")
          << size << " ranks";
  }
}

TEST_P(TransportConformance, AnyNumberOfPhases) {
  for (const unsigned phases : {1U, 3U, 4U}) {
    const Limits limits{.bytes = 8192, .messages = 4, .phases = phases};
    ASSERT_EQ(run(3, limits, all_to_all(400 / kSlowness, Waiting::kEither)), "") << phases << " phases";
  }
}

TEST_P(TransportConformance, SeveralBeatsAreUnderWay) {
  for (const Waiting how : {Waiting::kSpin, Waiting::kSleep, Waiting::kEither}) {
    for (const unsigned window : {1U, 2U, 3U}) {
      const Limits limits{.bytes = 8192, .messages = 8, .phases = window + 1};
      ASSERT_EQ(run(4, limits, overlapped(300 / kSlowness, window, how)), "") << window << " at a time";
    }
  }
}

TEST_P(TransportConformance, LargeMessages) {
  const Limits limits{.bytes = (std::size_t{1} << 20) + 64, .messages = 2, .phases = 2};
  ASSERT_EQ(run(2, limits, all_to_all(60 / kSlowness, Waiting::kEither)), "");
}

TEST_P(TransportConformance, NoWakeUpIsLost) {
  for (const unsigned phases : {1U, 2U}) {
    const Limits limits{.bytes = 512, .messages = 1, .phases = phases};
    ASSERT_EQ(run(2, limits, always_asleep(3000)), "") << phases << " phases";
  }
}

// The receiver's word on the board says how many beats it is about to have finished.
TEST_P(TransportConformance, SendersStayLessThanPhasesAhead) {
  for (const Waiting how : {Waiting::kSpin, Waiting::kSleep}) {
    const Limits limits{.bytes = 512, .messages = 1, .phases = 3};
    const auto send = [how](Rank& self) {
      Player player(self, how);
      Transport& transport = self.transport();
      for (std::uint64_t beat = 0; beat < 1000; ++beat) {
        transport.begin({beat, 9}, {});
        if (beat == 3) {  // nobody has received anything yet
          for (int turn = 0; turn < 100; ++turn) {
            self.require(!transport.may_send({beat, 9}, 1), "may send before the first beat is finished");
            transport.progress();
          }
          self.meet();
        }
        self.await([&] { return player.try_send({beat, 9}, small_place(1, 300)); }, how, "leave to send");
        self.require(self.word(1) + 3 > beat, "overtook the receiver");
        self.require(transport.may_send({beat, 9}, 1), "leave to send was taken back");
        transport.finish({beat, 9});
      }
    };
    const auto receive = [how](Rank& self) {
      Player player(self, how);
      const std::vector<Place> incoming = {small_place(0, 300)};
      self.meet();
      for (std::uint64_t beat = 0; beat < 1000; ++beat) {
        self.transport().begin({beat, 9}, incoming);
        self.await([&] { return player.try_receive({beat, 9}, incoming[0]); }, how, "a message");
        self.nap_now_and_then();
        self.require(player.try_receive({beat, 9}, incoming[0]), "the message went away");
        self.word(1) = beat + 1;
        self.transport().finish({beat, 9});
      }
    };
    ASSERT_EQ(run(2, limits, [&](Rank& self) { self.number() == 0 ? send(self) : receive(self); }), "");
  }
}

TEST_P(TransportConformance, NothingIsHereBeforeItWasSent) {
  EXPECT_EQ(run(2, kSmallLimits,
                [](Rank& self) {
                  Player player(self, Waiting::kSpin);
                  Transport& transport = self.transport();
                  for (std::uint64_t beat = 0; beat < 20; ++beat) {
                    const std::vector<Place> place = {small_place(1 - self.number(), 100)};
                    transport.begin({beat, 3}, place);
                    self.meet();
                    for (int turn = 0; turn < 20; ++turn) {
                      self.require(transport.arrival({beat, 3}, place[0]) == Arrival::kNotYet,
                                   "here too early");
                      transport.progress();
                    }
                    self.meet();
                    self.await([&] { return player.try_send({beat, 3}, place[0]); }, Waiting::kSpin, "leave");
                    self.await([&] { return player.try_receive({beat, 3}, place[0]); }, Waiting::kSpin, "it");
                    transport.finish({beat, 3});
                  }
                }),
            "");
}

TEST_P(TransportConformance, AnotherTokenIsAMismatch) {
  EXPECT_EQ(
      run(3, kSmallLimits,
          [](Rank& self) {
            Player player(self, Waiting::kEither);
            Transport& transport = self.transport();
            for (std::uint64_t beat = 0; beat < 5; ++beat)
              player.play({beat, 1}, places_of(self, beat, true), places_of(self, beat, false));
            const Beat beat{5, self.number() == 2 ? 2U : 1U};
            std::vector<Place> places;
            for (int peer = 0; peer < 3; ++peer) {
              if (peer != self.number()) places.push_back(small_place(peer));
            }
            transport.begin(beat, places);
            for (const Place& place : places) {
              self.await([&] { return player.try_send(beat, place); }, Waiting::kSleep, "leave to send");
            }
            for (const Place& place : places) {
              Arrival arrival = Arrival::kNotYet;
              const auto ask = [&] { return (arrival = transport.arrival(beat, place)) != Arrival::kNotYet; };
              self.await(ask, Waiting::kSleep, "a message of either call");
              const bool is_alike = self.number() != 2 && place.peer != 2;
              self.require(arrival == (is_alike ? Arrival::kHere : Arrival::kMismatch), "wrong answer");
              self.require(transport.arrival(beat, place) == arrival, "the answer changed");
            }
            self.meet();
            self.require(self.quit(), "cannot quit");
            self.meet();
          }),
      "");
}

// Rank 0 waits for two that are in another call, whose messages lie where it does not look: either theirs or
// those that it waits for are common.
TEST_P(TransportConformance, AnotherTokenElsewhereIsAMismatch) {
  const auto wait_for_strangers = [](Rank& self, const std::vector<Place>& places) {
    Transport& transport = self.transport();
    const Beat beat{0, 1};
    transport.begin(beat, places);
    for (const Place& place : places) {
      Arrival arrival = Arrival::kNotYet;
      const auto ask = [&] { return (arrival = transport.arrival(beat, place)) != Arrival::kNotYet; };
      self.await(ask, Waiting::kSleep, "a message of another call");
      self.require(arrival == Arrival::kMismatch, "wrong answer");
      self.require(transport.arrival(beat, place) == arrival, "the answer changed");
    }
  };
  const auto place_of = [](Rank& self, int peer, bool is_common) {
    Place place = small_place(peer);
    if (is_common && self.transport().near_boxes(peer).has_common) place.box = Box::kCommon;
    return place;
  };
  for (const bool is_common_sent : {false, true}) {
    const auto script = [&](Rank& self) {
      if (self.number() == 0) {
        const std::vector<Place> places = {place_of(self, 1, !is_common_sent),
                                           place_of(self, 2, !is_common_sent)};
        self.meet();  // both are there when it looks for the first time
        wait_for_strangers(self, places);
      } else {
        Player player(self, Waiting::kSleep);
        const Place place = place_of(self, 0, is_common_sent);
        const Beat beat{0, 2};
        self.transport().begin(beat, {});
        self.await([&] { return player.try_send(beat, place); }, Waiting::kSleep, "leave");
        self.await([&] { return self.transport().is_flushed(); }, Waiting::kSleep, "the flush");
        self.meet();
      }
      self.meet();
      self.require(self.quit(), "cannot quit");
      self.meet();
    };
    EXPECT_EQ(run(3, kSmallLimits, script), "");
  }
}

TEST_P(TransportConformance, FlushedMessagesNeedNoHelp) {
  const Limits limits{.bytes = 300000, .messages = 1, .phases = 2};
  EXPECT_EQ(run(2, limits,
                [](Rank& self) {
                  Player player(self, Waiting::kSleep);
                  const Place place = small_place(1 - self.number(), 290000);
                  if (self.number() == 0) {
                    player.play({0, 1}, {place}, {});
                    self.await([&] { return self.transport().is_flushed(); }, Waiting::kSleep, "the flush");
                  } else {
                    player.play({0, 1}, {}, {place});
                  }
                  self.meet(self.number() != 0);
                }),
            "");
}

// A message that nobody asks for yet, a beat without messages: there is nothing to do, so one can sleep.
TEST_P(TransportConformance, IdleRanksSleep) {
  EXPECT_EQ(run(2, kSmallLimits,
                [](Rank& self) {
                  Player player(self, Waiting::kSleep);
                  Transport& transport = self.transport();
                  Place first = small_place(1 - self.number());
                  Place second = first;
                  second.number = 1;
                  second.offset = 512;
                  const std::vector<Place> incoming = {first, second};
                  const Beat beat{0, 1};
                  transport.begin(beat, incoming);
                  self.await([&] { return player.try_send(beat, first); }, Waiting::kSleep, "leave to send");
                  bool has_slept = false;
                  for (int turn = 0; turn < 100 && !has_slept; ++turn) {
                    transport.progress();
                    self.require(transport.arrival(beat, second) == Arrival::kNotYet, "here too early");
                    pollfd event{transport.event_fd(), POLLIN, 0};
                    has_slept = transport.arm() && poll(&event, 1, 20) == 0;
                    transport.disarm();
                  }
                  self.require(has_slept, "finds no sleep");
                  self.meet();
                  self.await([&] { return player.try_send(beat, second); }, Waiting::kSleep, "leave to send");
                  for (const Place& place : incoming)
                    self.await([&] { return player.try_receive(beat, place); }, Waiting::kSleep, "a message");
                  transport.finish(beat);
                }),
            "");
}

// Everyone gives up where it stands: some have sent, nobody has received.
TEST_P(TransportConformance, AfterQuitNothingIsWritten) {
  const Limits limits{.bytes = 300000, .messages = 1, .phases = 2};
  EXPECT_EQ(run(3, limits,
                [](Rank& self) {
                  Player player(self, Waiting::kSpin);
                  Transport& transport = self.transport();
                  std::vector<Place> places;
                  for (int peer = 0; peer < self.size(); ++peer) {
                    if (peer != self.number()) places.push_back(small_place(peer, 290000));
                  }
                  transport.begin({0, 1}, places);
                  self.meet();
                  for (const Place& place : places) {
                    if (self.dice.below(3) != 0) player.try_send({0, 1}, place);
                  }
                  const auto begin = std::chrono::steady_clock::now();
                  self.require(self.quit(), "cannot quit");
                  self.require(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5),
                               "quits slowly");
                  self.meet();
                  std::vector<Content> found;
                  const auto look = [&](const Place& place) {
                    const std::byte* inbox = transport.inbox(Box::kPair, place.peer, 0);
                    return Content(inbox + place.offset, inbox + place.offset + place.bytes);
                  };
                  for (const Place& place : places) found.push_back(look(place));
                  std::this_thread::sleep_for(std::chrono::milliseconds(50));
                  for (std::size_t i = 0; i < places.size(); ++i)
                    self.require(look(places[i]) == found[i], "written");
                  self.meet();
                }),
            "");
}

}  // namespace onesum::engine::testing
