// Calls over worker processes at the edges of what the API takes: nothing at all, one replica here and two
// there, devices that a string leaves open.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sides.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

PerReplica uneven_values(const Side& side, const Shape& shape, DType dtype = DType::kFloat32) {
  return side.uneven([&](int replica, const Device& device) {
    Tensor tensor = Tensor::empty(dtype, shape, device);
    auto* const bytes = static_cast<unsigned char*>(tensor.memory());
    for (std::size_t i = 0; i < tensor.bytes(); ++i)
      bytes[i] = static_cast<unsigned char>(replica * 31 + static_cast<int>(i) % 50);
    return tensor;
  });
}

PerReplica uneven_slices(const Side& side, std::int64_t columns, bool has_rows) {
  return side.uneven([&](int replica, const Device& device) {
    const std::int64_t rows = has_rows ? replica % 3 : 0;
    std::vector<float> values(static_cast<std::size_t>(rows * columns), static_cast<float>(replica));
    const std::vector<std::int32_t> indices(static_cast<std::size_t>(rows), replica % 2);
    return IndexedSlices{Tensor::from<float>(values, {rows, columns}, device),
                         Tensor::from<std::int32_t>(indices, {rows}, device), Shape{5, columns}};
  });
}

std::vector<Mirrored> corners(CrossDeviceOps& ops, const Side& side) {
  CommunicationOptions merging;
  merging.sparse_rows = SparseRows::kMergeDuplicates;
  std::vector<Mirrored> all;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{7}, Shape{2, 300}}) {
    const PerReplica value = uneven_values(side, shape);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      all.push_back(ops.reduce(op, value, Destination(value)));
      all.push_back(ops.reduce(op, value, "CPU:0"));
      all.push_back(ops.reduce(op, value, own_device(1, 1)));
    }
    for (int axis = -static_cast<int>(shape.rank()); axis < static_cast<int>(shape.rank()); ++axis) {
      all.push_back(ops.gather(value, Destination(value), axis));
      all.push_back(ops.gather(value, own_device(1, 0), axis));
    }
  }
  const PerReplica flags = uneven_values(side, {9}, DType::kBool);
  all.push_back(ops.gather(flags, "CPU:1", 0));
  for (const std::int64_t columns : {0, 1, 4}) {
    for (const bool has_rows : {false, true}) {
      const PerReplica value = uneven_slices(side, columns, has_rows);
      for (const CommunicationOptions& options : {CommunicationOptions{}, merging}) {
        all.push_back(ops.reduce(ReduceOp::kSum, value, Destination(value), options));
        all.push_back(ops.reduce(ReduceOp::kMean, value, own_device(1, 1), options));
      }
    }
  }
  EXPECT_TRUE(ops.batch_reduce(ReduceOp::kSum, std::vector<ValueDestination>{}).empty());
  return all;
}

TEST(CornersOfProcesses, OfReductionToOneDevice) {
  for (const int workers : {2, 3}) {
    expect_same(workers, [](const Side& side) {
      ReductionToOneDevice ops({}, {}, side.cluster);
      return corners(ops, side);
    });
  }
}

TEST(CornersOfProcesses, OfAllReduces) {
  for (const int workers : {2, 3}) {
    for (const char* algorithm : {"hierarchical_copy", "xring", "auto"}) {
      expect_same(workers, [&](const Side& side) {
        AllReduceCrossDeviceOps ops(algorithm, 1, 0, 10, side.cluster);
        return corners(ops, side);
      });
    }
  }
}

// 6.1: a device that a string leaves open is worker 0's, on every worker.
TEST(CornersOfProcesses, TheDeviceOfASumMayBeLeftOpen) {
  expect_same(3, [](const Side& side) {
    ReductionToOneDevice ops("CPU:1", {}, side.cluster);
    const PerReplica value = uneven_values(side, {100});
    return std::vector<Mirrored>{ops.reduce(ReduceOp::kSum, value, Destination(value))};
  });
}

// 5.5: of every worker as root, whatever it broadcasts.
TEST(CornersOfProcesses, BroadcastsOfEverythingFromEveryRoot) {
  for (const int workers : {2, 3}) {
    for (const WorkerEnd& end : run_workers(workers, [&](int rank) {
           ReductionToOneDevice ops({}, {}, Cluster::from_environment());
           std::string text;
           for (int root = 0; root < workers; ++root) {
             const auto mine = static_cast<float>(rank);
             for (const Value& value :
                  {Value(Tensor::from<float>({mine}, {}, "CPU:0")),
                   Value(Tensor::empty(DType::kBool, {0, 2}, "CPU:0")),
                   Value(IndexedSlices{
                       Tensor::from<float>(std::vector<float>(static_cast<std::size_t>(rank), mine),
                                           {rank, 1}, "CPU:0"),
                       Tensor::from<std::int64_t>(
                           std::vector<std::int64_t>(static_cast<std::size_t>(rank), rank), {rank}, "CPU:0"),
                       Shape{10, 1}})}) {
               const Mirrored result = ops.broadcast(value, "CPU:1", root);
               text += std::to_string(result.devices().size()) + " ";
               if (const auto* tensor = std::get_if<Tensor>(&result.value(0))) {
                 text += tensor->shape().to_string() + " ";
                 if (tensor->bytes() == 4)
                   text += std::to_string(static_cast<int>(tensor->data<float>()[0])) + " ";
               } else {
                 for (const float x : result.slices().values.data<float>())
                   text += std::to_string(static_cast<int>(x)) + " ";
               }
             }
           }
           return text;
         })) {
      EXPECT_EQ(end.text, workers == 2 ? "2 [] 0 2 [0,2] 2 2 [] 1 2 [0,2] 2 1 "
                                       : "3 [] 0 3 [0,2] 3 3 [] 1 3 [0,2] 3 1 3 [] 2 3 [0,2] 3 2 2 ");
    }
  }
}

// 4.8: also where only another worker has slices; what all refuse ends nothing.
TEST(CornersOfProcesses, GathersOfSlicesAreRefusedByAll) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         const Side side{Cluster::from_environment(), rank, 2};
         ReductionToOneDevice ops({}, {}, side.cluster);
         const PerReplica dense = uneven_values(side, {2, 4});
         std::string text;
         for (const PerReplica& value :
              {uneven_slices(side, 4, true), rank == 0 ? dense : uneven_slices(side, 4, true)}) {
           try {
             ops.gather(value, "CPU:0", 0);
           } catch (const Error& error) {
             text += std::string(to_string(error.code())) + ": " + error.what() + "\n";
           }
         }
         return text + ops.gather(dense, "CPU:0", 0).tensor().shape().to_string();
       })) {
    EXPECT_THAT(end.text,
                ::testing::MatchesRegex(
                    "(unimplemented: value: gather takes tensors, not IndexedSlices.*\n){2}\\[6,4\\]"));
  }
}

TEST(CornersOfProcesses, ARootThatIsNoWorkerIsRefusedByAll) {
  for (const WorkerEnd& end : run_workers(2, [](int rank) {
         ReductionToOneDevice ops({}, {}, Cluster::from_environment());
         const Tensor mine = Tensor::from<float>({1}, {1}, "CPU:0");
         std::string text;
         try {
           ops.broadcast(mine, "CPU:0", 2);
         } catch (const Error& error) {
           text = error.what();
         }
         ops.broadcast(mine, "CPU:0", rank == 0 ? 1 : 2);
         return text;
       })) {
    EXPECT_THAT(end.text, HasSubstr("error invalid_argument: worker 1"));
    EXPECT_THAT(end.text, HasSubstr("refused call 1: broadcast from root 2; the cluster has 2 worker(s)"));
  }
}

}  // namespace
}  // namespace onesum::testing
