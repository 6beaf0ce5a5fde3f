// A message between two ranks of a transport that live in one thread.
#pragma once

#include <chrono>
#include <cstring>
#include <vector>

#include "engine/transport.h"
#include "support/waiting.h"

namespace onesum::engine::testing {

// The payload of a message that will be sent, of limits with two phases.
inline void write(Transport& from, const Beat& beat, const Place& place, int value) {
  std::memset(from.outbox(Box::kPair, place.peer, static_cast<unsigned>(beat.number % 2)) + place.offset,
              value, place.bytes);
}

// What rank 1 makes of `received` when rank 0 has sent `sent`, full of sevens.
template <class Pair>
Arrival exchange(Pair& pair, const Beat& sends, const Place& sent, const Beat& receives,
                 const Place& received) {
  const onesum::testing::HangGuard guard{std::chrono::seconds(20)};
  const std::vector<Place> incoming = {received};
  pair[1]->begin(receives, incoming);
  pair[0]->begin(sends, {});
  write(*pair[0], sends, sent, 7);
  pair[0]->send(sends, sent);
  Arrival arrival = Arrival::kNotYet;
  while ((arrival = pair[1]->arrival(receives, received)) == Arrival::kNotYet) {
    for (auto& transport : pair) transport->progress();
  }
  return arrival;
}

}  // namespace onesum::engine::testing
