// A rank that plays beats over a transport and looks at every byte; who sends what is decided by dice that
// all ranks throw alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/transport.h"
#include "engine/transport_ranks.h"

namespace onesum::engine::testing {

using Content = std::vector<std::byte>;

// What a message holds, by its key: alike for no two messages, but common ones, which are the same for
// whoever reads them.
std::uint64_t key_of(const Beat& beat, int from, int to, const Place& place);
void write_content(std::byte* to, std::size_t bytes, std::uint64_t key);

// A beat's messages between this rank and all others: nothing, everything the limits allow in one message, or
// some messages of odd sizes.
std::vector<Place> places_of(const Rank& self, std::uint64_t beat, bool outgoing);

// These, and common messages for some of the ranks that have such.
std::vector<Place> with_common(const Rank& self, std::uint64_t beat, bool outgoing,
                               std::vector<Place> places);

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
        mark_lent(begun.beat, begun.incoming);
        begun.awaited = begun.incoming;
        underway.push_back(std::move(begun));
        begin(underway.back().beat, underway.back().incoming);
      }
      if (underway.empty()) return;
      self_.await([&] { return advance(underway); }, how_,
                  "beat " + std::to_string(underway.front().beat.number));
      const Underway& done = underway.front();
      for (const Place& place : done.incoming) check(done.beat, place, "when the beat ends");
      finish(done.beat);
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
  void play(const Beat& beat, std::vector<Place> outgoing, std::vector<Place> incoming) {
    mark_lent(beat, incoming);
    begin(beat, incoming);
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
    finish(beat);
  }

  bool try_send(const Beat& beat, const Place& place) {
    if (is_common(place.box)) {
      if (common_sent_.contains({beat.number, place.number})) return true;  // to another of its readers
      if (transport_.reader_of_common(beat) >= 0) return false;
      common_sent_.emplace(beat.number, place.number);
    } else {
      if (is_lent(beat, place, 1)) return try_send_from(beat, place);
      if (!transport_.may_send(beat, place.peer)) return false;
    }
    std::byte* const box = transport_.outbox(place.box, place.peer, phase(beat));
    write_content(box + place.offset, place.bytes, key_of(beat, self_.number(), place.peer, place));
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
  // Whether it lies in memory of the player's, by dice of this end alone.
  bool is_lent(const Beat& beat, const Place& place, std::uint64_t end) const {
    if (place.box != Box::kPair || !transport_.near_boxes(place.peer).lends) return false;
    const auto self = static_cast<std::uint64_t>(self_.number());
    return Dice(key_of(beat, place.peer, self_.number(), place) + 31 * self + end).below(2) == 0;
  }
  void mark_lent(const Beat& beat, std::vector<Place>& incoming) const {
    for (Place& place : incoming) place.is_lent = is_lent(beat, place, 2);
  }
  void begin(const Beat& beat, const std::vector<Place>& incoming) {
    transport_.begin(beat, incoming);
    for (const Place& place : incoming) {
      if (!place.is_lent) continue;
      Content& memory = received_[{beat.number, place.peer, place.number}];
      memory.assign(place.bytes, std::byte{0});
      transport_.receive_into(beat, place, cut(memory));
    }
  }
  // What was sent from memory of the player's may be changed when it is taken.
  void finish(const Beat& beat) {
    self_.await([&] { return transport_.is_taken(beat); }, how_, "lent memory");
    for (Content& memory : std::exchange(lent_[beat.number], {})) {
      std::ranges::fill(memory, std::byte{0xEE});
    }
    transport_.finish(beat);
    std::erase_if(received_, [&](const auto& entry) { return std::get<0>(entry.first) == beat.number; });
  }
  bool try_send_from(const Beat& beat, const Place& place) {
    if (!transport_.may_send(beat, place.peer)) return false;
    Content& memory = lent_[beat.number].emplace_back(place.bytes);
    write_content(memory.data(), place.bytes, key_of(beat, self_.number(), place.peer, place));
    transport_.send_from(beat, place, cut(memory));
    return true;
  }
  static std::vector<Stretch> cut(Content& memory) {
    const std::size_t third = memory.size() / 3;
    const Stretch all(memory);
    return {all.first(third), all.subspan(third)};
  }

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
    const std::byte* const found =
        place.is_lent ? received_.at({beat.number, place.peer, place.number}).data() : box + place.offset;
    if (!std::equal(expected_.begin(), expected_.end(), found))
      self_.fail(name_of(beat, place) + " has wrong bytes " + when);
  }

  Rank& self_;
  Transport& transport_;
  Waiting how_;
  Content expected_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> common_sent_;              // beats and numbers
  std::map<std::tuple<std::uint64_t, int, std::uint32_t>, Content> received_;  // by beat, peer and number
  std::map<std::uint64_t, std::deque<Content>> lent_;                          // by beat
};

}  // namespace onesum::engine::testing
