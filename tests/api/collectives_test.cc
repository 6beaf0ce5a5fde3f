// Collectives among the devices of this process, by one worker and by several embedded ones.
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "support/collective_reference.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduce,        CollectiveKind::kBroadcast,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                     CollectiveKind::kScatter,       CollectiveKind::kAllToAll};

Tensor tensor_of(DType dtype, const Bytes& bytes, const Device& device) {
  const auto elements = static_cast<std::int64_t>(bytes.size() / size_of(dtype));
  Tensor tensor = Tensor::empty(dtype, Shape{elements}, device);
  if (!bytes.empty()) std::memcpy(tensor.memory(), bytes.data(), bytes.size());
  return tensor;
}

// The whole of a case in this process.
struct Scene {
  CollectiveCase its;
  std::vector<Tensor> replicas;
  std::vector<Tensor> results;

  Scene(const CollectiveCase& what, const std::vector<std::string>& devices, std::uint64_t seed = 1)
      : its(what) {
    const bool has_root = its.kind == CollectiveKind::kBroadcast || its.kind == CollectiveKind::kScatter;
    for (std::size_t r = 0; r < its.replicas.size(); ++r) {
      if (has_root && r != static_cast<std::size_t>(its.root)) continue;
      replicas.push_back(tensor_of(its.dtype, replica_bytes(its, r, seed), devices[r]));
    }
    for (std::size_t d = 0; d < its.results.size(); ++d) {
      results.push_back(
          filled_with(0xa5, its.dtype, {static_cast<std::int64_t>(its.results[d])}, devices[d]));
    }
  }

  Collective call() const {
    return {its.kind, its.op, 0, {PerReplica(replicas)}, {PerReplica(results)}, its.splits};
  }

  void expect_good(const std::string& name, std::uint64_t seed = 1) const {
    for (std::size_t d = 0; d < results.size(); ++d) {
      EXPECT_EQ(bytes_of(results[d]), expected_result(its, d, seed)) << name << ", result " << d;
    }
  }
};

std::string name_of(const CollectiveCase& its) {
  return std::string(to_string(its.kind)) + " of " + std::string(to_string(its.dtype)) + " over " +
         std::to_string(its.replicas.size()) + ", " + std::to_string(its.replicas.front()) + " elements";
}

std::vector<std::string> workers(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t w = 0; w < count; ++w) names.push_back("/job:worker/task:" + std::to_string(w));
  return names;
}

std::vector<std::string> devices_of_workers(std::size_t count) {
  std::vector<std::string> names = workers(count);
  for (std::string& name : names) name += "/device:CPU:0";
  return names;
}

TEST(Collectives, GiveWhatTheyShouldOfEveryType) {
  ReductionToOneDevice ops;
  for (const CollectiveKind kind : kKinds) {
    for (const DType dtype : kSummable) {
      const Scene scene(collective_case(kind, dtype, 3, 101, kind != CollectiveKind::kReduce), cpus(3));
      ops.run(scene.call());
      scene.expect_good(name_of(scene.its));
    }
  }
}

TEST(Collectives, GiveWhatTheyShouldOfEverySize) {
  for (const std::size_t parties : {1U, 2U, 3U, 5U}) {
    const Cluster embedded = Cluster::embedded(workers(parties), 1);
    ReductionToOneDevice here;
    ReductionToOneDevice among_workers({}, {}, embedded);
    for (const CollectiveKind kind : kKinds) {
      for (const std::size_t elements : {0U, 1U, 7U, 4099U}) {
        for (const bool uneven : {false, true}) {
          const CollectiveCase its = collective_case(kind, DType::kFloat32, parties, elements, uneven);
          const Scene one(its, cpus(parties));
          here.run(one.call());
          one.expect_good(name_of(its));
          const Scene several(its, devices_of_workers(parties));
          among_workers.run(several.call());
          several.expect_good(name_of(its) + " of workers");
        }
      }
    }
  }
}

TEST(Collectives, RunAgainPreparedAndStarted) {
  ReductionToOneDevice ops;
  for (const CollectiveKind kind : kKinds) {
    const Scene scene(collective_case(kind, DType::kFloat64, 4, 500), cpus(4));
    PreparedReduce prepared = ops.prepare(scene.call());
    prepared.run();
    scene.expect_good(name_of(scene.its));
    for (const Tensor& result : scene.results) std::memset(result.memory(), 0, result.bytes());
    prepared.start().wait();
    scene.expect_good(name_of(scene.its) + " started");
    for (const Tensor& result : scene.results) std::memset(result.memory(), 0, result.bytes());
    ops.start(scene.call()).wait();
    scene.expect_good(name_of(scene.its) + " by start");
  }
}

TEST(Collectives, TakeManyTensorsAtOnce) {
  ReductionToOneDevice ops;
  for (const CollectiveKind kind : kKinds) {
    std::vector<Scene> scenes;
    Collective all{kind, ReduceOp::kSum, 0, {}, {}};
    for (std::uint64_t i = 0; i < 6; ++i) {
      const DType dtype = i % 3 == 2 ? DType::kInt16 : DType::kFloat32;
      scenes.emplace_back(collective_case(kind, dtype, 3, 10 + 300 * i), cpus(3), i);
      all.values.emplace_back(scenes.back().replicas);
      all.results.emplace_back(scenes.back().results);
    }
    ops.run(all);
    for (std::uint64_t i = 0; i < scenes.size(); ++i) scenes[i].expect_good(name_of(scenes[i].its), i);
  }
}

// A tensor that is a part of another one's memory.
Tensor slice_of(const Tensor& whole, std::size_t first, std::size_t count) {
  auto* const memory = static_cast<std::byte*>(whole.memory()) + first * size_of(whole.dtype());
  return Tensor::borrow(memory, whole.dtype(), Shape{static_cast<std::int64_t>(count)}, whole.device());
}

TEST(Collectives, PartsMayLieWhereTheyBelong) {
  ReductionToOneDevice ops;
  for (const bool uneven : {false, true}) {
    Scene sums(collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 3, 1000, uneven), cpus(3));
    Scene whole(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 3, 1000, uneven), cpus(3));
    std::size_t first = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::size_t count = sums.its.results[d];
      sums.results[d] = slice_of(sums.replicas[d], first, count);
      const Tensor part = slice_of(whole.results[d], first, count);
      std::memcpy(part.memory(), whole.replicas[d].memory(), part.bytes());
      whole.replicas[d] = part;
      first += count;
    }
    ops.run(sums.call());
    sums.expect_good("reduce_scatter in place");
    ops.run(whole.call());
    whole.expect_good("all_gather in place");
  }
}

TEST(Collectives, RefuseOtherOverlaps) {
  ReductionToOneDevice ops;
  Scene sums(collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 2, 10), cpus(2));
  sums.results[1] = slice_of(sums.replicas[1], 5, 10);
  expect_invalid([&] { ops.run(sums.call()); }, {"tensor 0", "share memory", "part"});
  Scene all(collective_case(CollectiveKind::kAllToAll, DType::kFloat32, 2, 10), cpus(2));
  all.results[0] = all.replicas[0];
  expect_invalid([&] { ops.run(all.call()); }, {"tensor 0", "share memory"});
  Scene whole(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 2, 10), cpus(2));
  whole.results[1] = Tensor::borrow(whole.results[0].memory(), DType::kFloat32, Shape{20}, "CPU:1");
  expect_invalid([&] { ops.run(whole.call()); }, {"tensor 0", "result", "share memory"});
}

// What was bound for tensors apart from each other is not used for such that share memory, and the reverse.
TEST(Collectives, KnowPartsInPlaceFromOthers) {
  ReductionToOneDevice ops;
  const CollectiveCase its = collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 2, 1000);
  for (int round = 0; round < 2; ++round) {
    Scene apart(its, cpus(2));
    ops.run(apart.call());
    apart.expect_good("apart");
    Scene in_place(its, cpus(2));
    for (std::size_t d = 0; d < 2; ++d) in_place.results[d] = slice_of(in_place.replicas[d], d * 1000, 1000);
    ops.run(in_place.call());
    in_place.expect_good("in place");
    Scene moved(its, cpus(2));
    moved.results[0] = slice_of(moved.replicas[0], 500, 1000);
    expect_invalid([&] { ops.run(moved.call()); }, {"share memory"});
  }
}

TEST(Collectives, RefuseWhatDoesNotFit) {
  ReductionToOneDevice ops;
  const auto refused = [&](Scene scene, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { ops.run(scene.call()); }, parts);
    expect_invalid([&] { ops.prepare(scene.call()); }, parts);
    expect_invalid([&] { ops.start(scene.call()).wait(); }, parts);
  };
  CollectiveCase its = collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 2, 10);
  its.results[1] = 9;
  refused(Scene(its, cpus(2)), {"tensor 0", "19 elements together", "20"});
  its = collective_case(CollectiveKind::kAllGather, DType::kFloat32, 2, 10);
  its.results[1] = 21;
  refused(Scene(its, cpus(2)), {"CPU:1", "21 elements", "expected 20"});
  its = collective_case(CollectiveKind::kAllToAll, DType::kFloat32, 2, 10);
  its.replicas[0] = 21;
  refused(Scene(its, cpus(2)), {"CPU:0", "21 elements", "splits"});
  its = collective_case(CollectiveKind::kAllToAll, DType::kFloat32, 2, 10, true);
  its.splits[1] = {10, 10};
  refused(Scene(its, cpus(2)), {"CPU:1", "2 parts of 20 elements", "2 parts of 21"});

  Scene unequal(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 2, 10, true), cpus(2));
  Collective promised = unequal.call();
  promised.has_equal_parts = true;
  expect_invalid([&] { ops.run(promised); }, {"tensor 0", "10 elements", "11", "has_equal_parts"});

  Scene mixed(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 2, 10), cpus(2));
  mixed.results[1] = Tensor::empty(DType::kFloat64, Shape{20}, "CPU:1");
  refused(mixed, {"CPU:1", "float64", "float32"});

  Scene root(collective_case(CollectiveKind::kScatter, DType::kFloat32, 2, 10), cpus(2));
  Collective call = root.call();
  call.root = 1;
  expect_invalid([&] { ops.run(call); }, {"scatter", "root 1", "1 worker"});
  call = root.call();
  call.results.clear();
  expect_invalid([&] { ops.run(call); }, {"scatter", "1 values and 0 results"});
  call = root.call();
  call.values[0] =
      PerReplica(std::vector<Tensor>{root.replicas[0], Tensor::empty(DType::kFloat32, Shape{20}, "CPU:1")});
  expect_invalid([&] { ops.run(call); }, {"scatter", "2 replicas", "expected one"});
  call = root.call();
  call.splits = {{10, 10}};
  expect_invalid([&] { ops.run(call); }, {"splits are for all_to_all"});
  call = root.call();
  call.values[0] = PerReplica();
  expect_invalid([&] { ops.run(call); }, {"no components"});
}

TEST(Collectives, TakeTensorsOnly) {
  ReductionToOneDevice ops;
  const PerReplica sparse(slices({{1, 2}}, {0}, {}, "CPU:0"));
  const PerReplica result(Tensor::empty(DType::kFloat32, Shape{2}, "CPU:0"));
  expect_error([&] { ops.run(Collective::all_gather({sparse}, {result})); }, ErrorCode::kUnimplemented,
               {"all_gather", "IndexedSlices"});
}

TEST(Collectives, RefuseAFunctionThatNeedsWholeValues) {
  ReductionToOneDevice ops({}, [](std::span<const Tensor> all) { return all.front(); });
  const Scene scene(collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 2, 10), cpus(2));
  expect_invalid([&] { ops.run(scene.call()); }, {"reduce_scatter", "accumulation_fn"});
}

TEST(Collectives, MeansAreOfTheTypeThatMeansHave) {
  ReductionToOneDevice ops;
  CollectiveCase its = collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 3, 50);
  its.op = ReduceOp::kMean;
  const Scene scene(its, cpus(3));
  ops.run(scene.call());
  scene.expect_good("mean");
}

TEST(Collectives, PlansAreProvedAndExplained) {
  const Cluster embedded = Cluster::embedded(workers(4), 1);
  ReductionToOneDevice ops({}, {}, embedded);
  for (const CollectiveKind kind : kKinds) {
    const Scene scene(collective_case(kind, DType::kFloat32, 4, 100), devices_of_workers(4));
    const Plan plan = ops.plan(scene.call());
    plan.verify();
    EXPECT_EQ(plan.order(), "canonical");
    CollectiveSpec spec{kind, ReduceOp::kSum, 0, {DType::kFloat32, Shape{400}, {}, {}}};
    for (const std::string& name : devices_of_workers(4)) {
      spec.tensor.replicas.emplace_back(name);
      spec.tensor.destinations.emplace_back(name);
    }
    ops.plan(spec).verify();
    EXPECT_THAT(ops.explain(spec),
                HasSubstr(kind == CollectiveKind::kReduce ? "one_device" : to_string(kind)));
    EXPECT_THAT(ops.explain(scene.call()), HasSubstr("1 tensor in"));
    ops.run(scene.call());
    EXPECT_EQ(ops.last_call().tensors, 1U);
  }
}

TEST(Collectives, HaveNames) {
  for (const CollectiveKind kind : kKinds) EXPECT_EQ(parse_collective_kind(to_string(kind)), kind);
  expect_invalid([] { parse_collective_kind("all_reduce_scatter"); },
                 {"all_reduce_scatter", "reduce_scatter"});
}

}  // namespace
}  // namespace onesum::testing
