// What every transport must do, as tests. They are in transport_conformance.cc; a transport's own test
// instantiates them:
//
//   INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance, ::testing::Values(TransportUnderTest{...}));
//
// Scripts run as every rank at once, see transport_ranks.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "engine/transport.h"
#include "engine/transport_ranks.h"

namespace onesum::engine::testing {

inline constexpr Limits kSmallLimits{.bytes = 8192, .messages = 6, .phases = 2};

// The first message in an outbox.
inline Place small_place(int peer, std::size_t bytes = 8) {
  return {.peer = peer, .number = 0, .offset = kMessageHeader, .bytes = bytes};
}

// Everyone to everyone, messages of all sizes, with a nap now and then.
Script all_to_all(std::uint64_t beats, Waiting how);

// Two ranks that always sleep: in even beats both send and wait, in odd ones the second answers the first.
Script always_asleep(std::uint64_t beats);

class TransportConformance : public ::testing::TestWithParam<TransportUnderTest> {
 protected:
  static std::string run(int size, const Limits& limits, const Script& script) {
    return run_ranks(GetParam(), size, limits, script);
  }
};

}  // namespace onesum::engine::testing
