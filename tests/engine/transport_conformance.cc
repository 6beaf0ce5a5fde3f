#include "engine/transport_conformance.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

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

using Content = std::vector<std::byte>;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return Dice(a * 0x9E3779B97F4A7C15U + b).next(); }

std::uint64_t pair_key(std::uint64_t beat, int from, int to) {
  return mix(mix(beat, static_cast<std::uint64_t>(from)), static_cast<std::uint64_t>(to));
}

// A common message is the same for whoever reads it.
std::uint64_t key_of(const Beat& beat, int from, int to, const Place& place) {
  if (place.box == Box::kCommon) return mix(pair_key(beat.number, from, from), place.offset);
  return mix(pair_key(beat.number, from, to), place.number);
}

// What a message holds: alike for no two messages.
void write_content(std::byte* to, std::size_t bytes, std::uint64_t key) {
  std::size_t at = 0;
  for (std::uint64_t word = key; at + sizeof word <= bytes; at += sizeof word, word += 0x0123456789ABCDEFU)
    std::memcpy(to + at, &word, sizeof word);
  for (; at < bytes; ++at) to[at] = static_cast<std::byte>(key + at);
}

// Who sends what in a beat, by dice that both ends throw alike: nothing, everything the limits allow in one
// message, or some messages of odd sizes. `peer` is left to the caller.
std::vector<Place> random_places(const Limits& limits, std::uint64_t beat, int from, int to) {
  static constexpr std::size_t kSizes[] = {0, 1, 63, 64, 65, 8, 997, 4099};
  Dice dice(pair_key(beat, from, to));
  if (dice.below(6) == 0) return {};
  if (dice.below(12) == 0)
    return {{.number = 0, .offset = kMessageHeader, .bytes = limits.bytes - kMessageHeader}};
  std::vector<Place> places;
  std::size_t end = 0;
  for (std::uint64_t left = 1 + dice.below(limits.messages); left > 0; --left) {
    const std::size_t bytes = kSizes[dice.below(std::size(kSizes))];
    const std::size_t offset =
        (end + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment + kMessageHeader;
    if (offset + bytes > limits.bytes) break;
    places.push_back({.number = static_cast<std::uint32_t>(places.size()), .offset = offset, .bytes = bytes});
    end = offset + bytes;
  }
  return places;
}

// A rank that sends and receives whole beats and looks at every byte.
class Player {
 public:
  Player(Rank& self, Waiting how) : self_(self), transport_(self.transport()), how_(how) {}

  // A beat under way, and what is left of it.
  struct Underway {
    Beat beat;
    std::vector<Place> outgoing;
    std::vector<Place> incoming;
    std::vector<Place> awaited;
  };

  // Up to `window` beats at a time; `next` gives them, with their places, and none at the end.
  template <class Next>
  void play_overlapped(unsigned window, const Next& next) {
    std::deque<Underway> underway;
    bool is_more = true;
    while (true) {
      while (is_more && underway.size() < window) {
        Underway begun;
        is_more = next(begun);
        if (!is_more) break;
        begun.awaited = begun.incoming;
        underway.push_back(std::move(begun));
        transport_.begin(underway.back().beat, underway.back().incoming);
      }
      if (underway.empty()) return;
      self_.await([&] { return advance(underway); }, how_,
                  "beat " + std::to_string(underway.front().beat.number));
      const Underway& done = underway.front();
      for (const Place& place : done.incoming) check(done.beat, place, "when the beat ends");
      transport_.finish(done.beat);
      underway.pop_front();
    }
  }

  // The last one has its turn first; says whether the first one is done.
  bool advance(std::deque<Underway>& underway) {
    for (auto it = underway.rbegin(); it != underway.rend(); ++it) {
      std::erase_if(it->outgoing, [&](const Place& place) { return try_send(it->beat, place); });
      std::erase_if(it->awaited, [&](const Place& place) { return try_receive(it->beat, place); });
    }
    return underway.front().outgoing.empty() && underway.front().awaited.empty();
  }

  // All places of a beat, at this rank's side.
  void play(const Beat& beat, std::vector<Place> outgoing, const std::vector<Place>& incoming) {
    transport_.begin(beat, incoming);
    std::vector<Place> awaited = incoming;
    self_.await(
        [&] {
          std::erase_if(outgoing, [&](const Place& place) { return try_send(beat, place); });
          std::erase_if(awaited, [&](const Place& place) { return try_receive(beat, place); });
          return outgoing.empty() && awaited.empty();
        },
        how_, "beat " + std::to_string(beat.number));
    self_.nap_now_and_then();
    for (const Place& place : incoming) check(beat, place, "when the beat ends");
    transport_.finish(beat);
  }

  bool try_send(const Beat& beat, const Place& place) {
    const bool is_common = place.box == Box::kCommon;
    if (is_common ? transport_.reader_of_common(beat) >= 0 : !transport_.may_send(beat, place.peer))
      return false;
    if (!is_common || common_written_.emplace(beat.number, place.offset).second) {
      std::byte* const box = transport_.outbox(place.box, place.peer, phase(beat));
      write_content(box + place.offset, place.bytes, key_of(beat, self_.number(), place.peer, place));
    }
    transport_.send(beat, place);
    return true;
  }

  bool try_receive(const Beat& beat, const Place& place) {
    const Arrival arrival = transport_.arrival(beat, place);
    if (arrival == Arrival::kNotYet) return false;
    if (arrival != Arrival::kHere) self_.fail(name_of(beat, place) + " is a mismatch or corrupt");
    check(beat, place, "when it arrives");
    return true;
  }

 private:
  unsigned phase(const Beat& beat) const {
    return static_cast<unsigned>(beat.number % transport_.limits().phases);
  }
  static std::string name_of(const Beat& beat, const Place& place) {
    return "message " + std::to_string(place.number) + " of beat " + std::to_string(beat.number) +
           " from rank " + std::to_string(place.peer) + " (" + std::to_string(place.bytes) + " bytes at " +
           std::to_string(place.offset) + ")";
  }
  void check(const Beat& beat, const Place& place, const std::string& when) {
    expected_.resize(place.bytes);
    write_content(expected_.data(), place.bytes, key_of(beat, place.peer, self_.number(), place));
    const std::byte* const box = transport_.inbox(place.box, place.peer, phase(beat));
    const std::byte* const found = box + place.offset;
    if (!std::equal(expected_.begin(), expected_.end(), found))
      self_.fail(name_of(beat, place) + " has wrong bytes " + when);
  }

  Rank& self_;
  Transport& transport_;
  Waiting how_;
  Content expected_;
  std::set<std::pair<std::uint64_t, std::size_t>> common_written_;  // beats and offsets
};

// Common messages, each for some ranks, by dice that everyone throws alike. `numbers`: of the messages
// before, by rank.
constexpr std::uint32_t kMostCommon = 2;
std::vector<Place> common_places(const Rank& self, std::uint64_t beat, int from,
                                 std::vector<std::uint32_t>& numbers) {
  Dice dice(pair_key(beat, from, -1));
  std::vector<Place> places;
  std::size_t offset = kMessageHeader;
  for (std::uint64_t left = 1 + dice.below(kMostCommon); left > 0; --left) {
    const std::size_t bytes = dice.below(1000);
    for (int to = 0; to < self.size(); ++to) {
      const bool is_read = dice.below(3) != 0;
      const bool is_here = from == self.number() || to == self.number();
      if (to == from || !is_read || !is_here) continue;
      const int peer = from == self.number() ? to : from;
      if (!self.transport().near_boxes(peer).has_common) continue;
      places.push_back({.peer = peer,
                        .number = numbers.at(static_cast<std::size_t>(peer))++,
                        .offset = offset,
                        .bytes = bytes,
                        .box = Box::kCommon});
    }
    offset += (bytes / kMessageAlignment + 1) * kMessageAlignment + kMessageHeader;
  }
  return places;
}

// A beat's messages between this rank and all others, by dice.
std::vector<Place> places_of(const Rank& self, std::uint64_t beat, bool outgoing) {
  std::vector<Place> all;
  for (int peer = 0; peer < self.size(); ++peer) {
    if (peer == self.number()) continue;
    const int from = outgoing ? self.number() : peer;
    const int to = outgoing ? peer : self.number();
    for (Place place : random_places(self.transport().limits(), beat, from, to)) {
      place.peer = peer;
      all.push_back(place);
    }
  }
  return all;
}

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

std::vector<Place> with_common(const Rank& self, std::uint64_t beat, bool outgoing,
                               std::vector<Place> places) {
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(self.size()));
  const std::uint32_t others = self.transport().limits().messages - kMostCommon;
  std::erase_if(places, [&](const Place& place) { return place.number >= others; });
  for (const Place& place : places) ++numbers.at(static_cast<std::size_t>(place.peer));
  for (int rank = 0; rank < self.size(); ++rank) {
    if ((rank == self.number()) != outgoing) continue;
    const std::vector<Place> more = common_places(self, beat, rank, numbers);
    places.insert(places.end(), more.begin(), more.end());
  }
  return places;
}

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
