// How the tensors of all-reduces are packed: cut evenly, small ones in groups, up to so many bytes; and which
// spec takes which tensor.
#include "planner/pack.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace onesum::planner {
namespace {

using Sizes = std::vector<std::size_t>;

// An all-reduce of a tensor of so many elements over two devices.
Stream stream_of(std::size_t elements, Element element = Element::kFloat32) {
  Stream stream;
  stream.task.accumulator = element;
  stream.task.output = element;
  for (const std::int32_t device : {0, 1}) {
    stream.task.replicas.push_back({device, element});
    stream.task.destinations.push_back({device, -1});
  }
  stream.replica_elements = {elements, elements};
  return stream;
}

std::vector<Stream> streams_of(const Sizes& elements) {
  std::vector<Stream> streams;
  for (const std::size_t count : elements) streams.push_back(stream_of(count));
  return streams;
}

Policy policy_of(const std::string& alg = "xring") {
  Policy policy;
  policy.name = "Test";
  policy.specs = {{alg, 1, -1}};
  return policy;
}

std::vector<PackOfStreams> pack(const std::vector<Stream>& streams, const Policy& policy,
                                std::size_t bytes_per_pack = 0) {
  return pack_streams(streams, CallKind::kBatchReduce, policy, bytes_per_pack);
}

Sizes elements_of(const std::vector<PackOfStreams>& packs) {
  Sizes sizes;
  for (const PackOfStreams& one : packs) sizes.push_back(one.table.elements());
  return sizes;
}

Sizes tensors_of(const std::vector<PackOfStreams>& packs) {
  Sizes sizes;
  for (const PackOfStreams& one : packs) sizes.push_back(one.streams.size());
  return sizes;
}

// Every element of every stream is in exactly one pack, in order.
void expect_complete(const std::vector<Stream>& streams, const std::vector<PackOfStreams>& packs) {
  Sizes taken(streams.size(), 0), times(streams.size(), 0);
  for (const PackOfStreams& one : packs) {
    ASSERT_EQ(one.streams.size(), one.table.members.size());
    ASSERT_FALSE(one.streams.empty());
    for (std::size_t m = 0; m < one.streams.size(); ++m) {
      ASSERT_EQ(one.table.members[m].input_offset, taken[one.streams[m]]);
      ASSERT_EQ(one.table.members[m].first_input, 4 * one.streams[m]);
      ASSERT_EQ(one.table.members[m].first_output, 4 * one.streams[m] + 2);
      taken[one.streams[m]] += one.table.members[m].elements;
      ++times[one.streams[m]];
    }
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    EXPECT_EQ(taken[s], streams[s].replica_elements[0]) << "stream " << s;
    EXPECT_GE(times[s], 1U) << "stream " << s;
  }
}

Sizes cut(const Sizes& elements, int num_packs) {
  Policy policy = policy_of();
  policy.num_packs = num_packs;
  policy.small_tensor_max_bytes = 1000;  // does not count beside num_packs
  const std::vector<Stream> streams = streams_of(elements);
  const std::vector<PackOfStreams> packs = pack(streams, policy, 7);
  expect_complete(streams, packs);
  for (std::size_t p = 0; p < packs.size(); ++p) EXPECT_EQ(packs[p].number, p);
  return elements_of(packs);
}

TEST(PackGolden, ConcatenateAndSplitLeavesOutEmptyPacks) {
  EXPECT_EQ(cut({6, 4, 1}, 3), (Sizes{3, 3, 5}));
  EXPECT_EQ(cut({6, 4, 1}, 4), (Sizes{2, 2, 2, 5}));
  EXPECT_EQ(cut({6, 4, 1}, 20), (Sizes{11}));
  EXPECT_EQ(cut({6, 4, 1}, 1), (Sizes{11}));
  EXPECT_EQ(cut({0, 0}, 3), (Sizes{0}));
  EXPECT_EQ(cut({2}, 8), (Sizes{2}));
  EXPECT_EQ(cut({8}, 8), (Sizes(8, 1)));
  EXPECT_EQ(cut({0, 3, 0, 3, 0}, 2), (Sizes{3, 3}));
}

TEST(Pack, IsCutCompletelyWhateverTheSizes) {
  for (int num_packs = 1; num_packs < 12; ++num_packs) {
    for (std::size_t a = 0; a < 6; ++a) {
      for (std::size_t b = 0; b < 6; ++b) {
        const Sizes packs = cut({a, 0, b, a + b, 1}, num_packs);
        EXPECT_LE(packs.size(), static_cast<std::size_t>(num_packs));
      }
    }
  }
}

TEST(Pack, IsOfOneType) {
  Policy policy = policy_of();
  policy.num_packs = 2;
  const std::vector<Stream> streams = {stream_of(5), stream_of(4, Element::kInt8), stream_of(3)};
  const std::vector<PackOfStreams> packs = pack(streams, policy);
  expect_complete(streams, packs);
  EXPECT_EQ(elements_of(packs), (Sizes{4, 4, 2, 2}));
  EXPECT_EQ(packs[2].task.output, Element::kInt8);
}

Sizes group(const Sizes& elements, std::size_t max_bytes, int max_group) {
  Policy policy = policy_of();
  policy.small_tensor_max_bytes = max_bytes;
  policy.small_tensors_max_group = max_group;
  const std::vector<Stream> streams = streams_of(elements);
  const std::vector<PackOfStreams> packs = pack(streams, policy);
  expect_complete(streams, packs);
  return tensors_of(packs);
}

TEST(PackGolden, SmallTensorsComeInGroups) {
  const Sizes forty(40, 3);
  EXPECT_EQ(group(forty, 12, 1), Sizes(40, 1));
  EXPECT_EQ(group(forty, 12, 2), Sizes(20, 2));
  EXPECT_EQ(group(forty, 12, 10), Sizes(4, 10));
  EXPECT_EQ(group(forty, 11, 10), Sizes(40, 1));
  EXPECT_EQ(group(forty, 12, 0), Sizes(40, 1));
  // Shapes 4, 4, 3x3, 3x3.
  EXPECT_EQ(group({4, 4, 9, 9}, 12, 10), (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(group({4, 4, 9, 9}, 16, 10), (Sizes{2, 1, 1}));
  EXPECT_EQ(group({4, 4, 9, 9}, 256, 10), (Sizes{4}));
  EXPECT_EQ(group({8, 9, 12, 125}, 40, 10), (Sizes{2, 1, 1}));
  EXPECT_EQ(group({125, 6, 5}, 40, 10), (Sizes{1, 2}));
  EXPECT_EQ(group({125, 6, 5, 7, 100}, 40, 10), (Sizes{1, 3, 1}));
}

// Tensors of one element are small, of a hundred are not.
TEST(PackGolden, RangesOfSmallTensors) {
  const auto ranges = [](const Sizes& small) {
    Sizes elements(10, 100);
    for (const std::size_t i : small) elements[i] = 1;
    return group(elements, 4, 32);
  };
  EXPECT_EQ(ranges({}), Sizes(10, 1));
  EXPECT_EQ(ranges({1, 3, 4, 6, 7, 8, 9}), (Sizes{1, 1, 1, 2, 1, 4}));
  EXPECT_EQ(ranges({1, 2, 3, 4, 6, 7, 8, 9}), (Sizes{1, 4, 1, 4}));
  EXPECT_EQ(ranges({1, 3, 4, 6, 7, 9}), (Sizes{1, 1, 1, 2, 1, 2, 1, 1}));
  EXPECT_EQ(ranges({1, 3, 6, 9}), Sizes(10, 1));
}

TEST(PackGolden, PacksErrOnTheLargeSideOfBytesPerPack) {
  const auto fill = [](std::size_t bytes) {
    const std::vector<Stream> streams = streams_of({32, 8, 200, 1});  // 128, 32, 800 and 4 bytes
    const std::vector<PackOfStreams> packs = pack(streams, policy_of(), bytes);
    expect_complete(streams, packs);
    return tensors_of(packs);
  };
  EXPECT_EQ(fill(200), (Sizes{3, 1}));
  EXPECT_EQ(fill(128), (Sizes{2, 1, 1}));
  EXPECT_EQ(fill(1), (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(fill(960), (Sizes{4}));
  EXPECT_EQ(tensors_of(pack(streams_of({1, 2, 3}), policy_of("auto"))), (Sizes{3}));
  EXPECT_EQ(tensors_of(pack(streams_of({1, 2, 3}), policy_of("xring"))), (Sizes{1, 1, 1}));
}

TEST(PackGolden, SpecsTakeTensorsByBytes) {
  Policy policy = policy_of();
  policy.specs = {{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -1}};
  const auto spec_of = [&](const Stream& stream) {
    return route_of(stream, CallKind::kBatchReduce, policy).spec;
  };
  EXPECT_EQ(spec_of(stream_of(300)), 1U);
  EXPECT_EQ(spec_of(stream_of(256)), 0U);
  EXPECT_EQ(spec_of(stream_of(257)), 1U);
  EXPECT_EQ(spec_of(stream_of(1)), 0U);
  EXPECT_EQ(spec_of(stream_of(0)), 0U);
  EXPECT_EQ(spec_of(stream_of(1024, Element::kInt8)), 0U);
  // Packs of each spec are numbered by themselves.
  const std::vector<PackOfStreams> packs = pack(streams_of({300, 256, 1, 400}), policy);
  ASSERT_EQ(packs.size(), 4U);
  for (const PackOfStreams& one : packs) {
    EXPECT_EQ(one.number, one.streams[0] == 0 || one.streams[0] == 1 ? 0U : 1U) << one.streams[0];
  }
}

TEST(Pack, GoesToOneDeviceUnlessItIsAnAllReduce) {
  const Policy policy = policy_of();
  Stream stream = stream_of(3);
  EXPECT_EQ(route_of(stream, CallKind::kReduce, policy).way, Way::kAllReduce);
  EXPECT_EQ(route_of(stream, CallKind::kBroadcast, policy).way, Way::kOneDevice);
  EXPECT_EQ(route_of(stream, CallKind::kReduce, Policy()).way, Way::kOneDevice);
  std::swap(stream.task.destinations[0], stream.task.destinations[1]);
  EXPECT_EQ(route_of(stream, CallKind::kReduce, policy).way, Way::kAllReduce);
  stream.task.destinations.pop_back();
  EXPECT_EQ(route_of(stream, CallKind::kReduce, policy).way, Way::kOneDevice);
  stream.task.destinations.push_back({2, -1});
  EXPECT_EQ(route_of(stream, CallKind::kReduce, policy).way, Way::kOneDevice);
  stream.task.contract = plan::Contract::kConcatenate;
  EXPECT_EQ(route_of(stream, CallKind::kReduce, policy).way, Way::kConcatenate);
}

}  // namespace
}  // namespace onesum::planner
