// Every kind of call over worker processes: the same results as with all workers in one process.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sides.h"
#include "workers.h"

namespace onesum::testing {
namespace {

constexpr int kWorkers = 3;

TEST(CallsOfProcesses, Batches) {
  expect_same(kWorkers, [](const Side& side) {
    MultiWorkerAllReduce ops = side.ops("pscpu:2k:pscpu#2:64k:rechd");
    std::vector<Mirrored> all;
    for (std::uint64_t round = 0; round < 3; ++round) {
      std::vector<ValueDestination> pairs;
      for (const std::size_t elements : {3U, 700U, 0U, 20000U, 1U, 90000U}) {
        const PerReplica value =
            side.values(elements == 700 ? DType::kInt32 : DType::kFloat32, elements, round);
        pairs.push_back({value, value});
      }
      for (const Mirrored& result : ops.batch_reduce(ReduceOp::kMean, pairs)) all.push_back(result);
    }
    return all;
  });
}

TEST(CallsOfProcesses, IntoMemoryOfTheCallerPreparedAndStarted) {
  expect_same(kWorkers, [](const Side& side) {
    MultiWorkerAllReduce ops = side.ops("direct");
    std::vector<PerReplica> values{side.values(DType::kFloat32, 5000, 1),
                                   side.values(DType::kFloat64, 77, 2)};
    std::vector<PerReplica> results = values;  // in place
    ops.batch_reduce_into(ReduceOp::kSum, values, results);
    PreparedReduce prepared = ops.prepare(ReduceOp::kMean, values, results);
    prepared.run();
    prepared.start().wait();
    std::vector<Mirrored> all;
    for (const PerReplica& result : results)
      all.emplace_back(std::vector<Value>(result.values().begin(), result.values().end()));
    const PerReplica value = side.values(DType::kFloat32, 100, 3);
    const ValueDestination pair{value, value};
    Work work = ops.batch_reduce_async(ReduceOp::kSum, std::span(&pair, 1));
    all.push_back(work.results().front());
    return all;
  });
}

// One operation each on two and on three workers, and all of them on what has bits.
TEST(CallsOfProcesses, EveryOperation) {
  constexpr ReduceOp kReals[] = {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax};
  constexpr ReduceOp kBits[] = {ReduceOp::kProduct, ReduceOp::kMin,   ReduceOp::kMax,
                                ReduceOp::kBitAnd,  ReduceOp::kBitOr, ReduceOp::kBitXor};
  for (const int workers : {2, 3}) {
    expect_same(workers, [&](const Side& side) {
      std::vector<Mirrored> all;
      for (const char* spec : {"auto", "rechd", "pscpu"}) {
        MultiWorkerAllReduce ops = side.ops(spec);
        const PerReplica reals = side.values(DType::kFloat32, 5003, 1);
        const PerReplica integers = side.values(DType::kInt32, 701, 2);
        for (const ReduceOp op : kReals) all.push_back(ops.reduce(op, reals, Destination(reals)));
        for (const ReduceOp op : kBits) all.push_back(ops.reduce(op, integers, Destination(integers)));
      }
      return all;
    });
  }
}

// What the digests above cannot tell: that it is the operation that was asked for.
TEST(CallsOfProcesses, OperationsInFigures) {
  const auto body = [](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(3), 1, AllReduceSpecs("auto"), 0, 0, 10, cluster);
    const PerReplica value(
        Tensor::from<std::int32_t>({rank + 1, 6 - rank, 1 << rank}, {3}, own_device(rank, 0)));
    std::string text;
    for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kBitAnd,
                              ReduceOp::kBitOr, ReduceOp::kBitXor}) {
      const Mirrored result = ops.reduce(op, value, Destination(value));
      for (const std::int32_t number : result.tensor(0).data<std::int32_t>()) {
        text += std::to_string(number) + " ";
      }
      text += "; ";
    }
    return text;
  };
  for (const WorkerEnd& end : run_workers(3, body)) {
    EXPECT_EQ(end.text, "6 120 8 ; 1 4 1 ; 3 6 4 ; 0 4 0 ; 3 7 7 ; 0 7 7 ; ");
  }
}

TEST(CallsOfProcesses, DifferentOperationsAreRefusedByName) {
  const auto body = [](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(2), 1, AllReduceSpecs("auto"), 0, 0, 10, cluster);
    const PerReplica value(Tensor::from<float>({1}, {1}, own_device(rank, 0)));
    ops.reduce(rank == 0 ? ReduceOp::kMin : ReduceOp::kMax, value, Destination(value));
    return std::string("done");
  };
  for (const WorkerEnd& end : run_workers(2, body)) {
    EXPECT_THAT(end.text,
                ::testing::AllOf(::testing::HasSubstr("reduce (max)"), ::testing::HasSubstr("reduce (min)")));
  }
}

TEST(CallsOfProcesses, ToOneDeviceOrSome) {
  expect_same(kWorkers, [](const Side& side) {
    ReductionToOneDevice ops({}, {}, side.cluster);
    const PerReplica value = side.values(DType::kFloat32, 3000, 5);
    return std::vector<Mirrored>{ops.reduce(ReduceOp::kSum, value, own_device(1, 0)),
                                 ops.reduce(ReduceOp::kSum, value, "CPU:1"),
                                 ops.reduce(ReduceOp::kMean, value, Destination(value))};
  });
}

TEST(CallsOfProcesses, Gathers) {
  expect_same(kWorkers, [](const Side& side) {
    MultiWorkerAllReduce ops = side.ops("auto");
    std::vector<Mirrored> all;
    for (const int axis : {0, 1}) {
      std::vector<Tensor> parts;
      for (int worker = side.first(); worker < side.first() + side.count(); ++worker) {
        for (int device = 0; device < kDevices; ++device) {
          const std::int64_t varies = worker * 2 + device;
          const Shape shape = axis == 0 ? Shape{varies, 5} : Shape{4, varies};
          std::vector<float> numbers(shape.elements());
          for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = static_cast<float>(worker * 1000 + device * 100) + static_cast<float>(i);
          parts.push_back(Tensor::from<float>(numbers, shape, own_device(worker, device)));
        }
      }
      const PerReplica value(parts);
      all.push_back(ops.gather(value, Destination(value), axis));
    }
    return all;
  });
}

TEST(CallsOfProcesses, SparseValues) {
  expect_same(kWorkers, [](const Side& side) {
    MultiWorkerAllReduce ops = side.ops("auto");
    std::vector<Value> slices;
    for (int worker = side.first(); worker < side.first() + side.count(); ++worker) {
      for (int device = 0; device < kDevices; ++device) {
        const std::int64_t rows = worker + device;
        std::vector<float> values(static_cast<std::size_t>(rows) * 3, static_cast<float>(worker + 1));
        std::vector<std::int64_t> indices(static_cast<std::size_t>(rows), worker);
        slices.emplace_back(IndexedSlices{
            Tensor::from<float>(values, {rows, 3}, own_device(worker, device)),
            Tensor::from<std::int64_t>(indices, {rows}, own_device(worker, device)), Shape{10, 3}});
      }
    }
    const PerReplica value(slices);
    const Mirrored sum = ops.reduce(ReduceOp::kMean, value, Destination(value));
    return std::vector<Mirrored>{sum};
  });
}

TEST(CallsOfProcesses, BroadcastsOfEveryRoot) {
  const std::vector<WorkerEnd> ends = run_workers(kWorkers, [](int rank) {
    const Cluster cluster = Cluster::from_environment();
    MultiWorkerAllReduce ops(worker_names(kWorkers), kDevices, AllReduceSpecs("auto"), 0, 0, 10, cluster);
    std::string text;
    for (int root = 0; root < kWorkers; ++root) {
      const Tensor mine = Tensor::from<float>({static_cast<float>(rank), 7}, {2}, "CPU:0");
      const Mirrored result = ops.broadcast(mine, "CPU:1", root);
      text += std::to_string(static_cast<int>(result.tensor().data<float>()[0])) + " ";
    }
    return text;
  });
  for (const WorkerEnd& end : ends) EXPECT_EQ(end.text, "0 1 2 ");
}

TEST(CallsOfProcesses, AResultElsewhereNamesItsOwner) {
  const std::vector<WorkerEnd> ends = run_workers(2, [](int rank) -> std::string {
    ReductionToOneDevice ops({}, {}, Cluster::from_environment());
    const Mirrored result =
        ops.reduce(ReduceOp::kSum, replicas(rank, 1, DType::kInt32, 4, 1), own_device(1, 0));
    if (rank == 1) return std::to_string(result.size());
    EXPECT_EQ(result.devices().size(), 1U);
    return std::to_string(result.tensor().bytes());
  });
  EXPECT_THAT(ends[0].text, ::testing::HasSubstr("task:1/device:CPU:0, a device of another process"));
  EXPECT_EQ(ends[1].text, "1");
}

// Without a cluster, the environment's is taken, and there is only one.
TEST(CallsOfProcesses, MultiWorkerAllReduceTakesTheEnvironment) {
  const std::vector<WorkerEnd> ends = run_workers(2, [](int rank) {
    MultiWorkerAllReduce ops(worker_names(2), kDevices);
    MultiWorkerAllReduce others(worker_names(2), kDevices, AllReduceSpecs("xring"));
    const PerReplica value = replicas(rank, 1, DType::kInt32, 4, 1);
    std::string text = digest(ops.reduce(ReduceOp::kSum, value, Destination(value)));
    if (text != digest(others.reduce(ReduceOp::kSum, value, Destination(value)))) text = "different";
    text += std::to_string(ops.cluster().rank());
    EXPECT_EQ(Cluster::from_environment().rank(), rank);
    try {
      MultiWorkerAllReduce wrong(worker_names(3), kDevices);
    } catch (const Error& error) {
      text += error.what();
    }
    return text;
  });
  EXPECT_THAT(ends[0].text, ::testing::HasSubstr("0MultiWorkerAllReduce: worker_devices[2]"));
  EXPECT_THAT(ends[1].text, ::testing::HasSubstr("1MultiWorkerAllReduce: worker_devices[2]"));
}

TEST(CallsOfProcesses, Barriers) {
  for (const WorkerEnd& end : run_workers(kWorkers, [](int) {
         Cluster cluster = Cluster::from_environment();
         for (int i = 0; i < 100; ++i) cluster.barrier();
         return std::to_string(cluster.rank()) + " of " + std::to_string(cluster.size());
       })) {
    EXPECT_THAT(end.text, ::testing::HasSubstr(" of 3"));
  }
}

}  // namespace
}  // namespace onesum::testing
