// How a step is cut into segments: whatever its size, every element is in exactly one, and a step that is
// worth sharing has some for every thread.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "collective/one_device.h"
#include "engine/host/host_engine.h"
#include "exec/bind.h"

namespace onesum::exec {
namespace {

constexpr std::size_t kTraffic = 16;  // bytes for an element of float32 that two replicas bring and get

// The elements of each segment of a sum on two devices.
std::vector<std::size_t> segments_of(std::size_t elements, unsigned threads) {
  const auto engine = engine::make_host_engine({.threads = threads, .pool_limit_bytes = {}});
  collective::Task task;
  for (const std::int32_t device : {0, 1}) {
    task.replicas.push_back({device, Element::kFloat32});
    task.destinations.push_back({device, -1});
  }
  plan::PackTable table;
  table.members.push_back({elements, 0, 2});
  const auto program =
      bind(collective::one_device({{0, 0}, {}}, task, 0), std::vector<plan::PackTable>{table}, 4, {*engine});
  std::vector<std::size_t> sizes;
  for (const Segment& segment : program->segments) {
    std::size_t& size = sizes.emplace_back(0);
    for (std::uint32_t p = 0; p < segment.num_pieces; ++p) {
      const Piece& piece = program->pieces[segment.first_piece + p];
      EXPECT_EQ(piece.first, std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
      size += piece.count;
    }
  }
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), elements);
  return sizes;
}

TEST(Segments, OfSmallStepsAreAsManyAsThreads) {
  EXPECT_EQ(segments_of(1024, 2).size(), 1U);  // 16 KiB of traffic
  EXPECT_EQ(segments_of(8192, 2).size(), 2U);  // 128 KiB
  EXPECT_EQ(segments_of(12000, 2).size(), 2U);
  EXPECT_EQ(segments_of(65536, 2).size(), 4U);  // 1 MiB
  EXPECT_EQ(segments_of(65536, 64).size(), 8U);
  EXPECT_EQ(segments_of(8192, 1).size(), 1U);
  EXPECT_EQ(segments_of(65536, 1).size(), 4U);
}

TEST(Segments, AreNeitherTooLargeNorTooSmall) {
  for (const unsigned threads : {1U, 2U, 3U, 16U}) {
    for (std::size_t elements = 1; elements < 2'000'000; elements += elements / 3 + 1) {
      const std::vector<std::size_t> sizes = segments_of(elements, threads);
      ASSERT_LE(*std::ranges::max_element(sizes) * kTraffic, std::size_t{256} << 10) << elements;
      // All but the last, which is what is left.
      for (std::size_t s = 0; s + 1 < sizes.size(); ++s) {
        ASSERT_GE(sizes[s] * kTraffic, std::size_t{64} << 10) << elements << " " << threads;
        ASSERT_EQ(sizes[s] % 64, 0U);
      }
    }
  }
}

}  // namespace
}  // namespace onesum::exec
