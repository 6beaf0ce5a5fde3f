#include "engine/transport_player.h"

#include <cstring>

namespace onesum::engine::testing {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return Dice(a * 0x9E3779B97F4A7C15U + b).next(); }

std::uint64_t pair_key(std::uint64_t beat, int from, int to) {
  return mix(mix(beat, static_cast<std::uint64_t>(from)), static_cast<std::uint64_t>(to));
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

// Common messages, tiny ones among them, each for some ranks, by dice that everyone throws alike.
constexpr std::uint32_t kMostCommon = 3;
std::vector<Place> common_places(const Rank& self, std::uint64_t beat, int from) {
  Dice dice(pair_key(beat, from, -1));
  std::vector<Place> places;
  std::size_t offset = kMessageHeader;
  const std::uint64_t messages = 1 + dice.below(kMostCommon);
  for (std::uint32_t number = 0; number < messages; ++number) {
    const std::size_t bytes = dice.below(dice.below(2) == 0 ? 64 : 1000);
    for (int to = 0; to < self.size(); ++to) {
      const bool is_read = dice.below(3) != 0;
      const bool is_here = from == self.number() || to == self.number();
      if (to == from || !is_read || !is_here) continue;
      const int peer = from == self.number() ? to : from;
      const NearBoxes near = self.transport().near_boxes(peer);
      if (!near.has_common) continue;
      const bool is_tiny = near.tiny_bytes > 0 && bytes <= near.tiny_bytes;
      places.push_back({.peer = peer,
                        .number = number,
                        .offset = is_tiny ? number * near.tiny_stride : offset,
                        .bytes = bytes,
                        .box = is_tiny ? Box::kCommonTiny : Box::kCommon});
    }
    offset += (bytes / kMessageAlignment + 1) * kMessageAlignment + kMessageHeader;
  }
  return places;
}

}  // namespace

std::uint64_t key_of(const Beat& beat, int from, int to, const Place& place) {
  if (is_common(place.box)) return mix(pair_key(beat.number, from, from), place.number);
  return mix(pair_key(beat.number, from, to), place.number);
}

void write_content(std::byte* to, std::size_t bytes, std::uint64_t key) {
  std::size_t at = 0;
  for (std::uint64_t word = key; at + sizeof word <= bytes; at += sizeof word, word += 0x0123456789ABCDEFU)
    std::memcpy(to + at, &word, sizeof word);
  for (; at < bytes; ++at) to[at] = static_cast<std::byte>(key + at);
}

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

std::vector<Place> with_common(const Rank& self, std::uint64_t beat, bool outgoing,
                               std::vector<Place> places) {
  for (int rank = 0; rank < self.size(); ++rank) {
    if ((rank == self.number()) != outgoing) continue;
    const std::vector<Place> more = common_places(self, beat, rank);
    places.insert(places.end(), more.begin(), more.end());
  }
  return places;
}

}  // namespace onesum::engine::testing
