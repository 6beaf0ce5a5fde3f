// Concatenations, along the first axis and along inner ones.
#include "collective/concatenate.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/host/host_engine.h"
#include "harness.h"

namespace onesum::exec {
namespace {

engine::ThreadedEngine& engine() {
  static const std::unique_ptr<engine::ThreadedEngine> host =
      engine::make_host_engine({.threads = 3, .pool_limit_bytes = {}});
  return *host;
}

plan::Plan concatenation(std::size_t replicas, std::size_t destinations, Element input, Element accumulator,
                         Element output, std::int64_t divisor) {
  collective::Task task;
  task.contract = plan::Contract::kConcatenate;
  task.accumulator = accumulator;
  task.output = output;
  task.divisor = divisor;
  for (std::size_t r = 0; r < replicas; ++r) task.replicas.push_back({static_cast<std::int32_t>(r), input});
  for (std::size_t d = 0; d < destinations; ++d)
    task.destinations.push_back({static_cast<std::int32_t>(d), -1});
  const collective::Topology topology{std::vector<std::int32_t>(std::max(replicas, destinations), 0), {}};
  return collective::concatenate(topology, task, 0);
}

TEST(Concatenate, OfReplicasOfAnyLength) {
  const std::vector<std::size_t> lengths[] = {
      {1}, {0}, {3, 5}, {0, 4}, {4, 0}, {0, 0, 0}, {100000, 1, 0, 70000}, {1, 2, 3, 4, 5, 6, 7}};
  for (const std::vector<std::size_t>& counts : lengths) {
    for (const std::size_t destinations : {1U, 3U}) {
      for (const std::size_t outer : {1U, 2U, 9U, 1000U}) {
        if (outer > 10 && counts.front() > 1000) continue;
        SCOPED_TRACE(std::to_string(counts.size()) + " replicas, " + std::to_string(outer) + " rows");
        Harness(concatenation(counts.size(), destinations, Element::kFloat32, Element::kFloat32,
                              Element::kFloat32, 1),
                {{{}, counts, outer}}, engine())
            .run_and_expect_as_simulated();
      }
    }
  }
}

TEST(Concatenate, OfEveryWidth) {
  for (const Element element : {Element::kUInt8, Element::kInt16, Element::kFloat32, Element::kFloat64,
                                Element::kComplex128, Element::kBool}) {
    for (const std::size_t outer : {1U, 5U}) {
      Harness(concatenation(3, 2, element, element, element, 1), {{{}, {3, 1, 70}, outer}}, engine())
          .run_and_expect_as_simulated();
    }
  }
}

TEST(Concatenate, DividesAndConverts) {
  for (const std::size_t outer : {1U, 4U}) {
    Harness(concatenation(3, 2, Element::kFloat32, Element::kFloat32, Element::kFloat32, 3),
            {{{}, {3, 0, 70}, outer}}, engine())
        .run_and_expect_as_simulated();
    Harness(concatenation(3, 2, Element::kInt32, Element::kInt64, Element::kFloat64, 3),
            {{{}, {3, 0, 70}, outer}}, engine())
        .run_and_expect_as_simulated();
    Harness(concatenation(2, 1, Element::kFloat16, Element::kFloat32, Element::kFloat16, 2),
            {{{}, {9, 4}, outer}}, engine())
        .run_and_expect_as_simulated();
    Harness(concatenation(2, 1, Element::kInt32, Element::kInt64, Element::kInt64, 1), {{{}, {9, 4}, outer}},
            engine())
        .run_and_expect_as_simulated();
  }
}

TEST(Concatenate, LongRowsAndManyRows) {
  Harness(concatenation(2, 2, Element::kFloat32, Element::kFloat32, Element::kFloat32, 1),
          {{{}, {200001, 3}, 3}}, engine())
      .run_and_expect_as_simulated();
  Harness(concatenation(3, 1, Element::kUInt8, Element::kUInt8, Element::kUInt8, 1), {{{}, {1, 3, 2}, 20000}},
          engine())
      .run_and_expect_as_simulated();
}

}  // namespace
}  // namespace onesum::exec
