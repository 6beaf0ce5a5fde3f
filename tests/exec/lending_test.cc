// Which messages lie in tensors, and when those may be used.
#include "exec/lending.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "collective/all_reduce.h"

namespace onesum::exec {
namespace {

using collective::Algorithm;

plan::Plan all_reduce(Algorithm algorithm, bool in_place) {
  collective::Topology topology;
  collective::Task task;
  for (std::int32_t device = 0; device < 4; ++device) {
    topology.device_rank.push_back(device);
    task.replicas.push_back({device, Element::kFloat32});
    task.destinations.push_back({device, in_place ? device : -1});
  }
  task.output = Element::kFloat32;
  collective::Scheme scheme;
  scheme.across = algorithm;
  return collective::all_reduce(topology, task, scheme);
}

// Of rank 0: messages that it sends and receives, and those of them that lie in tensors.
struct Counts {
  std::size_t sent = 0;
  std::size_t sent_from_tensors = 0;
  std::size_t received = 0;
  std::size_t received_into_tensors = 0;
  std::size_t at_once = 0;     // of these
  std::size_t overwrites = 0;  // steps that do
  friend bool operator==(const Counts&, const Counts&) = default;
};

Counts count(const plan::Plan& plan) {
  const Messages messages = messages_of(plan);
  const Lending lending = lending_of(plan, messages, 0);
  Counts counts;
  for (std::size_t m = 0; m < messages.all.size(); ++m) {
    const plan::Channel& channel = plan.channel(messages.all[m].channel);
    const Lent& lent = lending.of_message[m];
    const std::size_t is_lent = lent.tensor != nullptr ? 1 : 0;
    if (plan.rank_of(channel.from) == 0) {
      ++counts.sent;
      counts.sent_from_tensors += is_lent;
    } else if (plan.rank_of(channel.to) == 0) {
      ++counts.received;
      counts.received_into_tensors += is_lent;
      if (is_lent == 0) continue;
      counts.at_once += lent.after < 0 ? 1 : 0;
      EXPECT_EQ(lent.after_sends, lent.after >= 0) << "what is used before is what was sent from there";
    } else {
      EXPECT_EQ(is_lent, 0U) << "between others";
    }
  }
  for (const auto& steps : lending.overwrites) {
    counts.overwrites += static_cast<std::size_t>(std::ranges::count(steps, true));
  }
  return counts;
}

// Contributions and results are sent from tensors, results are received there. In place, not before the
// contribution is on its way.
TEST(Lending, OfAllReduces) {
  EXPECT_EQ(count(all_reduce(Algorithm::kDirect, true)), (Counts{6, 6, 6, 3, 0, 3}));
  EXPECT_EQ(count(all_reduce(Algorithm::kDirect, false)), (Counts{6, 6, 6, 3, 3, 0}));
}

// Who sends all it has to everyone may not write the sum before that is taken.
TEST(Lending, WhatIsSentIsNotOverwritten) {
  EXPECT_EQ(count(all_reduce(Algorithm::kExchange, true)), (Counts{3, 3, 3, 0, 0, 1}));
  EXPECT_EQ(count(all_reduce(Algorithm::kExchange, false)), (Counts{3, 3, 3, 0, 0, 0}));
}

// Partial sums are in no tensor.
TEST(Lending, OfPartialSums) {
  EXPECT_EQ(count(all_reduce(Algorithm::kHalvingDoubling, false)), (Counts{4, 3, 4, 2, 2, 0}));
}

}  // namespace
}  // namespace onesum::exec
