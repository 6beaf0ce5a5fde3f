// From requests to streams. What is refused is tested through the public classes (tests/api/errors_test.cc).
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planner/request.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::planner {
namespace {

using plan::Contract;
using testing::expect_error;

Placement own_process() { return {Device().canonical(), {}, {}}; }

ComponentInfo dense(DType dtype, const Shape& shape, const char* device) {
  return {{dtype, shape, device}, {}, {}};
}

ComponentInfo sparse(const Shape& values, DType indices, const char* device) {
  return {{DType::kFloat32, values, device}, TensorInfo{indices, Shape{values[0]}, device}, {}};
}

Request request_of(std::vector<ComponentInfo> replicas, std::vector<Device> destinations,
                   CallKind kind = CallKind::kBatchReduce, ReduceOp op = ReduceOp::kSum) {
  Request request;
  request.kind = kind;
  request.op = op;
  PairInfo pair;
  pair.replicas = std::move(replicas);
  pair.destinations = std::move(destinations);
  request.pairs.push_back(pair);
  return request;
}

TEST(Resolve, NumbersDevicesInOrderOfAppearance) {
  Request request = request_of({dense(DType::kFloat32, {2}, "CPU:4"), dense(DType::kFloat32, {2}, "/cpu:1")},
                               {"CPU:1", "CPU:7"});
  request.pairs.push_back(request.pairs[0]);
  request.pairs[1].destinations = {"CPU:0", "CPU:4"};
  const Resolved resolved = resolve(request, own_process());
  std::vector<std::string> names;
  for (const Device& device : resolved.devices) names.push_back(device.to_string());
  EXPECT_EQ(names, (std::vector<std::string>{testing::full_name(4), testing::full_name(1),
                                             testing::full_name(7), testing::full_name(0)}));
  ASSERT_EQ(resolved.streams.size(), 2U);
  EXPECT_EQ(resolved.streams[0].task.replicas,
            (std::vector<collective::Source>{{0, Element::kFloat32}, {1, Element::kFloat32}}));
  EXPECT_EQ(resolved.streams[0].task.destinations, (std::vector<collective::Target>{{1, -1}, {2, -1}}));
  EXPECT_EQ(resolved.streams[1].task.destinations, (std::vector<collective::Target>{{3, -1}, {0, -1}}));
  EXPECT_EQ(resolved.streams[1].pair, 1U);
}

TEST(Resolve, TypesOfSumsAndMeans) {
  const auto task_of = [](ReduceOp op, DType dtype) {
    const Request request =
        request_of({dense(dtype, {3}, "CPU:0"), dense(dtype, {3}, "CPU:1"), dense(dtype, {3}, "CPU:2")},
                   {"CPU:0"}, CallKind::kReduce, op);
    return resolve(request, own_process()).streams.at(0).task;
  };
  EXPECT_EQ(task_of(ReduceOp::kSum, DType::kInt8).accumulator, Element::kInt8);
  EXPECT_EQ(task_of(ReduceOp::kSum, DType::kInt8).divisor, 1);
  EXPECT_EQ(task_of(ReduceOp::kMean, DType::kInt8).accumulator, Element::kInt64);
  EXPECT_EQ(task_of(ReduceOp::kMean, DType::kInt8).output, Element::kFloat32);
  EXPECT_EQ(task_of(ReduceOp::kMean, DType::kInt8).divisor, 3);
  EXPECT_EQ(task_of(ReduceOp::kMean, DType::kUInt64).accumulator, Element::kUInt128);
  EXPECT_EQ(task_of(ReduceOp::kSum, DType::kBFloat16).accumulator, Element::kFloat32);
  EXPECT_EQ(task_of(ReduceOp::kMean, DType::kBFloat16).output, Element::kBFloat16);
}

TEST(Resolve, BroadcastsAndGathersLeaveTypesAlone) {
  for (const CallKind kind : {CallKind::kBroadcast, CallKind::kGather}) {
    const Request request = request_of({dense(DType::kBool, {3}, "CPU:0")}, {"CPU:1"}, kind, ReduceOp::kSum);
    const Stream stream = resolve(request, own_process()).streams.at(0);
    EXPECT_EQ(stream.result_dtype, DType::kBool);
    EXPECT_EQ(stream.task.divisor, 1);
    EXPECT_EQ(stream.task.contract, kind == CallKind::kGather ? Contract::kConcatenate : Contract::kReduce);
  }
}

TEST(Resolve, GathersAlongAnAxis) {
  Request request =
      request_of({dense(DType::kInt16, {2, 3, 5}, "CPU:0"), dense(DType::kInt16, {2, 4, 5}, "CPU:1")},
                 {"CPU:0"}, CallKind::kGather);
  for (const int axis : {1, -2}) {
    request.axis = axis;
    const Stream stream = resolve(request, own_process()).streams.at(0);
    EXPECT_EQ(stream.outer, 2U);
    EXPECT_EQ(stream.replica_elements, (std::vector<std::size_t>{30, 40}));
    EXPECT_EQ(stream.result_shape, (Shape{2, 7, 5}));
  }
}

TEST(Resolve, SlicesAreTwoStreams) {
  const Request request =
      request_of({sparse({2, 3}, DType::kInt32, "CPU:0"), sparse({4, 3}, DType::kInt64, "CPU:1")}, {"CPU:1"},
                 CallKind::kBatchReduce, ReduceOp::kMean);
  const Resolved resolved = resolve(request, own_process());
  ASSERT_EQ(resolved.streams.size(), 2U);
  const Stream& values = resolved.streams[0];
  const Stream& indices = resolved.streams[1];
  EXPECT_EQ(values.part, StreamPart::kSliceValues);
  EXPECT_EQ(values.task.divisor, 2);
  EXPECT_EQ(values.result_shape, (Shape{6, 3}));
  EXPECT_EQ(values.replica_elements, (std::vector<std::size_t>{6, 12}));
  EXPECT_EQ(indices.part, StreamPart::kSliceIndices);
  EXPECT_EQ(indices.task.divisor, 1);
  EXPECT_EQ(indices.result_dtype, DType::kInt64);
  EXPECT_EQ(indices.result_shape, (Shape{6}));
  EXPECT_EQ(indices.task.replicas[0].element, Element::kInt32);
  EXPECT_EQ(indices.task.contract, Contract::kConcatenate);
}

TEST(Resolve, DeclaredTypesRuleTheResult) {
  Request request =
      request_of({dense(DType::kFloat32, {3}, "CPU:0"), dense(DType::kFloat32, {3}, "CPU:1")}, {"CPU:0"});
  request.pairs[0].declared_dtype = DType::kFloat16;
  const Stream stream = resolve(request, own_process()).streams.at(0);
  EXPECT_EQ(stream.result_dtype, DType::kFloat16);
  EXPECT_EQ(stream.task.replicas[0].element, Element::kFloat32);
  EXPECT_EQ(stream.task.accumulator, Element::kFloat32);
  EXPECT_EQ(stream.task.output, Element::kFloat16);
}

TEST(Place, CompletesAndChecks) {
  EXPECT_EQ(place("CPU:3", own_process(), "x").to_string(), testing::full_name(3));
  EXPECT_EQ(place("", own_process(), "x").to_string(), testing::full_name(0));
  expect_error([] { place("/task:1", own_process(), "thing 7"); }, ErrorCode::kInvalidArgument,
               {"thing 7", "/task:1", "not a device"});
  expect_error([] { place("GPU:0", own_process(), "thing 7"); }, ErrorCode::kUnavailable,
               {"thing 7", "GPU:0"});
  const Placement worker{Device("/job:worker/task:2").canonical(), {}, {}};
  EXPECT_EQ(place("CPU:1", worker, "x").to_string(), "/job:worker/replica:0/task:2/device:CPU:1");
  expect_error([&] { place("/job:localhost/CPU:1", worker, "x"); }, ErrorCode::kInvalidArgument,
               {"/job:localhost"});
  const Placement two{Device().canonical(), {Device("CPU:0").canonical(), Device("CPU:5").canonical()}, {}};
  EXPECT_EQ(place("/cpu:5", two, "x").to_string(), testing::full_name(5));
  expect_error([&] { place("CPU:1", two, "x"); }, ErrorCode::kInvalidArgument, {"CPU:1", "2 devices"});
}

// What is only planned needs no engine, but must be named.
TEST(Place, OnDevicesWithoutAnEngineIfItIsOnlyPlanned) {
  const Placement gpu{Device().canonical(), {Device("GPU:0").canonical()}, {}};
  EXPECT_EQ(place("GPU:0", gpu, "x", true), gpu.devices.front());
  for (const bool only_planned : {false, true}) {
    expect_error([&] { place("GPU:1", gpu, "thing 7", only_planned); }, ErrorCode::kUnavailable, {"GPU:1"});
    expect_error([&] { place("GPU:0", own_process(), "thing 7", only_planned); }, ErrorCode::kUnavailable,
                 {"GPU:0"});
  }
  expect_error([&] { place("GPU:0", gpu, "thing 7"); }, ErrorCode::kUnavailable, {"GPU:0"});
}

// Two workers with two CPUs each.
Placement two_workers() {
  Placement placement;
  for (const char* worker : {"/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}) {
    placement.workers.emplace_back(worker);
    for (const char* device : {"CPU:0", "CPU:1"})
      placement.devices.push_back(Device(device).merged_over(placement.workers.back()));
  }
  placement.defaults = placement.devices.front();
  return placement;
}

TEST(Place, OnDevicesOfTheWorkersOnly) {
  const Placement placement = two_workers();
  EXPECT_EQ(place("CPU:1", placement, "x"), placement.devices[1]);
  EXPECT_EQ(place("/task:1", placement, "x"), placement.devices[2]);
  EXPECT_EQ(rank_of(placement.devices[1], placement), 0);
  EXPECT_EQ(rank_of(placement.devices[2], placement), 1);
  expect_error([&] { place("/task:2", placement, "thing 7"); }, ErrorCode::kInvalidArgument,
               {"thing 7", "/task:2", "the cluster's workers", "/job:worker/replica:0/task:0, ", "task:1)"});
  expect_error([&] { place("/job:chief/task:0", placement, "thing 7"); }, ErrorCode::kInvalidArgument,
               {"/job:chief", "the cluster's workers"});
  expect_error(
      [&] { place("/task:1/CPU:2", placement, "thing 7"); }, ErrorCode::kInvalidArgument,
      {"thing 7", "/task:1/device:CPU:2", "4 devices", "task:0/device:CPU:0", "task:1/device:CPU:1"});
  expect_error([&] { place("/task:1/GPU:0", placement, "thing 7"); }, ErrorCode::kUnavailable, {"GPU:0"});
}

TEST(Place, OnHostsThatAreNotAmongTheDevices) {
  Placement placement = two_workers();
  placement.others = {placement.devices[0], placement.devices[2]};
  placement.devices = {placement.devices[1], placement.devices[3]};
  EXPECT_EQ(place("/task:1/CPU:0", placement, "x"), placement.others[1]);
  expect_error([&] { place("CPU:2", placement, "x"); }, ErrorCode::kInvalidArgument, {"CPU:2"});
}

TEST(Destinations, OfTextWithoutATaskAreOnEveryWorker) {
  const Placement placement = two_workers();
  const std::vector<Device> second{placement.devices[1], placement.devices[3]};
  EXPECT_EQ(on_every_worker("CPU:1", placement), second);
  EXPECT_EQ(on_every_worker("/job:worker/CPU:1", placement), second);
  EXPECT_EQ(on_every_worker("/job:worker/replica:0/CPU:1", placement), second);
  EXPECT_EQ(on_every_worker("/task:1/CPU:1", placement), std::vector<Device>{"/task:1/CPU:1"});
  EXPECT_EQ(on_every_worker("/job:chief/CPU:1", placement), std::vector<Device>{"/job:chief/CPU:1"});
  EXPECT_EQ(on_every_worker("CPU:1", own_process()), std::vector<Device>{"CPU:1"});
  Request request = request_of({dense(DType::kFloat32, {2}, "CPU:0")}, {"CPU:1"});
  EXPECT_EQ(resolve(request, placement).streams[0].task.destinations.size(), 1U);
  request.pairs[0].destination_is_text = true;
  const Resolved resolved = resolve(request, placement);
  EXPECT_EQ(resolved.devices,
            (std::vector<Device>{placement.devices[0], placement.devices[1], placement.devices[3]}));
  EXPECT_EQ(resolved.device_rank, (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(resolved.streams[0].task.destinations, (std::vector<collective::Target>{{1, -1}, {2, -1}}));
}

TEST(Resolve, AllReducesOfAllWorkersOnly) {
  Placement placement = two_workers();
  const Request one_worker = request_of(
      {dense(DType::kFloat32, {2}, "CPU:0"), dense(DType::kFloat32, {2}, "CPU:1")}, {"CPU:1", "CPU:0"});
  EXPECT_NO_THROW(resolve(one_worker, placement));
  placement.all_workers = true;
  expect_error([&] { resolve(one_worker, placement); }, ErrorCode::kInvalidArgument,
               {"pair 0", "no replica", "worker 1", "/job:worker/replica:0/task:1"});
  Request elsewhere = one_worker;
  elsewhere.pairs[0].destinations = {"CPU:0"};
  EXPECT_NO_THROW(resolve(elsewhere, placement));
  Request gather = one_worker;
  gather.kind = CallKind::kGather;
  EXPECT_NO_THROW(resolve(gather, placement));
  const Request both = request_of(
      {dense(DType::kFloat32, {2}, "/task:1"), dense(DType::kFloat32, {2}, "CPU:1")}, {"CPU:1", "/task:1"});
  EXPECT_NO_THROW(resolve(both, placement));
}

TEST(Resolve, NamesThePairOfABatch) {
  Request request = request_of({dense(DType::kFloat32, {}, "CPU:0")}, {"CPU:0"});
  request.pairs.push_back(request.pairs[0]);
  request.pairs[1].replicas.clear();
  expect_error([&] { resolve(request, own_process()); }, ErrorCode::kInvalidArgument,
               {"pair 1", "no components"});
  request.kind = CallKind::kReduce;
  expect_error([&] { resolve(request, own_process()); }, ErrorCode::kInvalidArgument,
               {"value: ", "no components"});
}

TEST(Resolve, DenseAndSparseTogetherAreABugOfTheCaller) {
  const Request request = request_of(
      {dense(DType::kFloat32, {2, 3}, "CPU:0"), sparse({2, 3}, DType::kInt32, "CPU:1")}, {"CPU:0"});
  expect_error([&] { resolve(request, own_process()); }, ErrorCode::kInternal, {"pair 0"});
}

}  // namespace
}  // namespace onesum::planner
