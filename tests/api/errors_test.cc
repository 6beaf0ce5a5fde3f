// docs/semantics.md, section 8. What is refused, with which code, and what the message names. The object
// stays usable after each of them.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum {
namespace {

using testing::contents;
using testing::expect_error;
using testing::scalar;
using testing::scalars;
using testing::vectors;

constexpr auto kBadOp = static_cast<ReduceOp>(99);

using Parts = std::initializer_list<std::string_view>;
using Where = std::source_location;

class Refused : public ::testing::Test {
 protected:
  ~Refused() override {
    EXPECT_EQ(contents<float>(ops_.reduce(ReduceOp::kSum, good_, good_).tensor(1)), std::vector<float>{3});
  }

  // The same error comes out of every way to ask; only the name of the value differs.
  void refuse(ReduceOp op, const PerReplica& value, const Destination& destination, ErrorCode code,
              Parts parts, const CommunicationOptions& options = {}, Where where = Where::current()) {
    expect_error([&] { ops_.reduce(op, value, destination, options); }, code, parts, where);
    const std::vector<ValueDestination> pairs{{good_, good_}, {good_, "CPU:0"}, {value, destination}};
    expect_error([&] { ops_.batch_reduce(op, pairs, options); }, code, parts, where);
    expect_error([&] { ops_.plan(op, pairs, options); }, code, parts, where);
    expect_error([&] { ops_.explain(op, pairs, options); }, code, parts, where);
    Work work = ops_.batch_reduce_async(op, pairs, options);
    expect_error([&] { work.wait(); }, code, parts, where);
    expect_error([&] { work.results(); }, code, parts, where);
    try {
      ops_.batch_reduce(op, pairs, options);
    } catch (const Error& error) {
      last_message_ = error.what();
    }
  }
  void invalid(const PerReplica& value, const Destination& destination, Parts parts,
               Where where = Where::current()) {
    refuse(ReduceOp::kSum, value, destination, ErrorCode::kInvalidArgument, parts, {}, where);
    EXPECT_EQ(last_message_.find("pair 2: "), 0U) << last_message_;
    expect_error([&] { ops_.reduce(ReduceOp::kSum, value, destination); }, ErrorCode::kInvalidArgument,
                 {"value: "}, where);
  }

  ReductionToOneDevice ops_;
  PerReplica good_ = scalars<float>({1, 2});
  std::string last_message_;
};

PerReplica list(std::vector<Tensor> tensors) { return PerReplica(std::move(tensors)); }

// 3.1, 8.2
TEST_F(Refused, UnknownOperationsBeforeAnythingElse) {
  const PerReplica broken = list({scalar(1.0F, "CPU:0"), scalar(true, "CPU:0")});
  refuse(kBadOp, good_, good_, ErrorCode::kInvalidArgument, {"reduce operation", "99", "sum, mean"});
  refuse(kBadOp, broken, "/job:elsewhere/GPU:3", ErrorCode::kInvalidArgument, {"reduce operation", "99"});
  refuse(kBadOp, PerReplica(scalar(1.0F, "CPU:0")), "CPU:0", ErrorCode::kInvalidArgument,
         {"reduce operation"});
  expect_error([&] { ops_.batch_reduce(kBadOp, {}); }, ErrorCode::kInvalidArgument, {"reduce operation"});
  expect_error([&] { ops_.batch_reduce_into(kBadOp, {}, {}); }, ErrorCode::kInvalidArgument,
               {"reduce operation"});
  expect_error([&] { ops_.prepare(kBadOp, {}, {}); }, ErrorCode::kInvalidArgument, {"reduce operation"});
  expect_error([&] { ops_.batch_reduce_async(kBadOp, {}).wait(); }, ErrorCode::kInvalidArgument,
               {"reduce operation"});
}

// 8.5
TEST_F(Refused, TwoReplicasOnOneDevice) {
  invalid(list({scalar(1.0F, "CPU:1"), scalar(2.0F, "/device:CPU:1")}), "CPU:0",
          {"two replicas", testing::full_name(1)});
}

// 8.5
TEST_F(Refused, ADestinationNamedTwice) {
  invalid(good_, list({scalar(1.0F, "CPU:1"), scalar(2.0F, testing::full_name(1))}),
          {"destination", testing::full_name(1), "twice"});
}

// 8.8
TEST_F(Refused, DifferentShapes) {
  invalid(list({testing::vector_of<float>({1, 2}, "CPU:0"), testing::vector_of<float>({1, 2, 3}, "CPU:1")}),
          "CPU:0", {testing::full_name(1), "[3]", "3 elements", testing::full_name(0), "[2]", "2 elements"});
  invalid(list({Tensor::from<float>({1, 2}, {2, 1}, "CPU:0"), Tensor::from<float>({1, 2}, {1, 2}, "CPU:3")}),
          "CPU:0", {testing::full_name(3), "[1,2]", "[2,1]"});
  invalid(list({scalar(1.0F, "CPU:0"), testing::vector_of<float>({1}, "CPU:1")}), "CPU:0", {"[1]", "[]"});
}

// 8.9
TEST_F(Refused, DifferentTypes) {
  invalid(list({scalar(1.0F, "CPU:0"), scalar(1.0F, "CPU:1"), scalar(1.0, "CPU:2")}), "CPU:0",
          {testing::full_name(2), "float64", testing::full_name(0), "float32"});
}

// 8.10
TEST_F(Refused, Bool) {
  refuse(ReduceOp::kSum, scalars<bool>({true, false}), "CPU:0", ErrorCode::kInvalidArgument, {"bool", "sum"});
  refuse(ReduceOp::kMean, scalars<bool>({true, false}), "CPU:0", ErrorCode::kInvalidArgument,
         {"bool", "mean"});
}

// 8.6
TEST_F(Refused, DevicesOfOtherProcesses) {
  for (const char* device : {"/job:worker/cpu:0", "/task:1/cpu:0", "/replica:2/CPU:0"}) {
    invalid(list({scalar(1.0F, device)}), "CPU:0",
            {"replica 0", "not a device of this process", "/job:localhost"});
    invalid(good_, device, {"destination", "not a device of this process"});
  }
}

// 8.7
TEST_F(Refused, KindsOfDevicesWithoutEngine) {
  float memory = 1;
  const Tensor gpu = Tensor::borrow(&memory, DType::kFloat32, {}, "GPU:0");
  refuse(ReduceOp::kSum, PerReplica(gpu), "CPU:0", ErrorCode::kUnavailable,
         {"replica 0", "GPU:0", "no GPU was found"});
  refuse(ReduceOp::kSum, good_, "GPU:1", ErrorCode::kUnavailable,
         {"destination", "GPU:1", "no GPU was found"});
  refuse(ReduceOp::kSum, good_, "TPU:1", ErrorCode::kUnavailable,
         {"destination", "TPU:1", "no engine for TPU devices"});
  expect_error([] { ReductionToOneDevice ops("GPU:0"); }, ErrorCode::kUnavailable,
               {"reduce_to_device", "GPU:0"});
  expect_error([] { ReductionToOneDevice ops("/job:worker/cpu:0"); }, ErrorCode::kInvalidArgument,
               {"reduce_to_device", "/job:worker"});
  expect_error([] { ReductionToOneDevice ops("CPU:zero"); }, ErrorCode::kInvalidArgument, {"CPU:zero"});
}

// A cluster may name such a device, but its memory must not be touched.
TEST_F(Refused, KindsOfDevicesWithoutEngineInACluster) {
  float memory = 1;
  const Tensor gpu = Tensor::borrow(&memory, DType::kFloat32, {}, "GPU:0");
  ReductionToOneDevice ops({}, {}, Cluster::local({"CPU:0", "GPU:0"}));
  expect_error([&] { ops.reduce(ReduceOp::kSum, PerReplica(gpu), "CPU:0"); }, ErrorCode::kUnavailable,
               {"GPU:0"});
  expect_error([&] { ops.broadcast(scalar(1.0F, "CPU:0"), "GPU:0"); }, ErrorCode::kUnavailable, {"GPU:0"});
}

// 1.6, 8.6
TEST_F(Refused, DevicesThatTheClusterDoesNotName) {
  ReductionToOneDevice ops({}, {}, Cluster::local({"CPU:0", "CPU:1"}));
  expect_error([&] { ops.reduce(ReduceOp::kSum, scalars<float>({1, 2, 3}), "CPU:0"); },
               ErrorCode::kInvalidArgument, {"value", "replica 2", testing::full_name(2), "2 devices"});
  expect_error([&] { ops.broadcast(scalar(1.0F, "CPU:0"), "CPU:2"); }, ErrorCode::kInvalidArgument,
               {"destination", "CPU:2"});
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, good_, "CPU:1")), std::vector<float>{3});
  expect_error([] { Cluster::local({"CPU:0", "/cpu:0"}); }, ErrorCode::kInvalidArgument, {"CPU:0", "twice"});
  expect_error([] { Cluster::local({"CPU:0", "nonsense"}); }, ErrorCode::kInvalidArgument, {"nonsense"});
}

// 8.3, 8.4
TEST_F(Refused, ValuesWithoutComponentsAndTensorsWithoutMemory) {
  expect_error([] { PerReplica(std::vector<Tensor>()); }, ErrorCode::kInvalidArgument,
               {"PerReplica", "no components"});
  expect_error([] { PerReplica(Tensor{}); }, ErrorCode::kInvalidArgument, {"component 0", "nothing"});
  expect_error([&] { ops_.reduce(ReduceOp::kSum, good_, Tensor()); }, ErrorCode::kInvalidArgument,
               {"destination"});
  expect_error([&] { ops_.reduce(ReduceOp::kSum, good_, ""); }, ErrorCode::kInvalidArgument,
               {"destination", "empty"});
  expect_error([&] { ops_.broadcast(Tensor(), "CPU:0"); }, ErrorCode::kInvalidArgument, {"nothing"});
}

// 8.3
TEST_F(Refused, ValuesThatWereMovedAway) {
  PerReplica moved = scalars<float>({1, 2});
  const PerReplica elsewhere = std::move(moved);
  invalid(moved, "CPU:0", {"no components"});  // NOLINT(bugprone-use-after-move)
  std::vector<PerReplica> values{good_};
  std::vector<PerReplica> results{scalars<float>({0, 0})};
  const PerReplica taken = std::move(results[0]);
  expect_error([&] { ops_.batch_reduce_into(ReduceOp::kSum, values, results); }, ErrorCode::kInvalidArgument,
               {"pair 0", "destination", "no devices"});
}

// 8.2, 8.13
TEST_F(Refused, Options) {
  CommunicationOptions options;
  options.timeout = std::chrono::milliseconds(0);
  refuse(ReduceOp::kSum, good_, good_, ErrorCode::kInvalidArgument, {"options.timeout", "0 ms"}, options);
  options.timeout = std::chrono::milliseconds(-5);
  refuse(ReduceOp::kSum, good_, good_, ErrorCode::kInvalidArgument, {"options.timeout", "-5 ms"}, options);
  options = {};
  options.implementation = static_cast<Implementation>(9);
  refuse(ReduceOp::kSum, good_, good_, ErrorCode::kInvalidArgument,
         {"options.implementation", "9", "auto, ring, nccl"}, options);
  options = {};
  options.numerics = static_cast<Numerics>(9);
  refuse(ReduceOp::kSum, good_, good_, ErrorCode::kInvalidArgument, {"options.numerics", "9"}, options);
  options.numerics = Numerics::kExact;
  refuse(ReduceOp::kSum, good_, good_, ErrorCode::kUnimplemented, {"exact"}, options);
  expect_error([&] { ops_.gather(vectors<float>({{1}}), "CPU:0", 0, options); }, ErrorCode::kUnimplemented,
               {"exact"});
  options = {};
  options.sparse_rows = static_cast<SparseRows>(9);
  refuse(ReduceOp::kSum, good_, good_, ErrorCode::kInvalidArgument, {"options.sparse_rows", "9"}, options);
}

// 5.11
TEST_F(Refused, OptionsThatAreHintsAreTaken) {
  CommunicationOptions options;
  options.bytes_per_pack = 1;
  options.implementation = Implementation::kNccl;
  options.numerics = Numerics::kFast;
  options.sparse_rows = SparseRows::kMergeDuplicates;  // of a dense value there are none
  options.timeout = std::chrono::milliseconds::max();
  EXPECT_EQ(contents<float>(ops_.reduce(ReduceOp::kSum, good_, "CPU:0", options)), std::vector<float>{3});
  EXPECT_EQ(
      contents<float>(ops_.batch_reduce_async(ReduceOp::kSum, testing::one_pair(good_, "CPU:0"), options)
                          .results()
                          .at(0)),
      std::vector<float>{3});
}

// 8.11
TEST_F(Refused, SlicesThatDoNotFitTogether) {
  using testing::slices;
  invalid(
      PerReplica({slices({{1, 2}}, {0}, Shape{5, 2}, "CPU:0"), slices({{1, 2}}, {0}, Shape{6, 2}, "CPU:1")}),
      "CPU:0", {"dense shape", "[6,2]", "[5,2]", testing::full_name(1)});
  invalid(PerReplica({slices({{1, 2}}, {0}, {}, "CPU:0"), slices({{1, 2}}, {0}, Shape{5, 2}, "CPU:1"),
                      slices({{1, 2}}, {0}, Shape{6, 2}, "CPU:2")}),
          "CPU:0", {"dense shape", "[6,2]", "[5,2]", testing::full_name(1), testing::full_name(2)});
  invalid(PerReplica({slices({{1, 2}}, {0}, {}, "CPU:0"), slices({{1}}, {0}, {}, "CPU:1")}), "CPU:0",
          {"[1,1]", "[1,2]"});
  IndexedSlices broken = slices({{1, 2}, {3, 4}}, {0, 1}, {}, "CPU:0");
  broken.indices = testing::vector_of<std::int64_t>({1}, "CPU:0");
  invalid(PerReplica(broken), "CPU:0", {"replica 0"});
  broken.indices = scalar(1.0F, "CPU:0");
  invalid(PerReplica(broken), "CPU:0", {"replica 0"});
}

// 4.6, 8.11
TEST_F(Refused, MixedComponentsThatDoNotFitTogether) {
  const Tensor dense = Tensor::from<float>({1, 2, 3}, {3, 1}, "CPU:0");
  const auto with = [&](const Value& other) { return PerReplica(std::vector<Value>{dense, other}); };
  invalid(with(testing::slices({{1, 2}}, {0}, {}, "CPU:1")), "CPU:0", {"replica 1", "[1,2]", "[3,1]"});
  invalid(with(testing::slices({{1}}, {0}, Shape{4, 1}, "CPU:1")), "CPU:0", {"replica 1", "[4,1]", "[3,1]"});
  invalid(with(testing::slices({{1}}, {3}, {}, "CPU:1")), "CPU:0", {"replica 1", "index 3", "3"});
  invalid(with(testing::slices({{1}}, {-1}, {}, "CPU:1")), "CPU:0", {"replica 1", "index -1"});
  IndexedSlices wide = testing::slices({{1}}, {0}, {}, "CPU:1");
  wide.values = Tensor::from<double>({1}, {1, 1}, "CPU:1");
  invalid(with(wide), "CPU:0", {"replica 1", "float64", "float32"});
  invalid(with(testing::slices({{1}}, {0}, {}, "CPU:0")), "CPU:0", {"two replicas", "CPU:0"});
}

// 8.12, 8.13
TEST_F(Refused, Gathers) {
  const auto invalid_gather = [&](const PerReplica& value, int axis, Parts parts,
                                  Where where = Where::current()) {
    expect_error([&] { ops_.gather(value, "CPU:0", axis); }, ErrorCode::kInvalidArgument, parts, where);
  };
  invalid_gather(good_, 0, {"value", "scalars"});
  const PerReplica matrices =
      list({Tensor::from<float>({1, 2}, {1, 2}, "CPU:0"), Tensor::from<float>({1, 2}, {2, 1}, "CPU:1")});
  invalid_gather(matrices, 2, {"axis 2", "2 axes", "-2 to 1"});
  invalid_gather(matrices, -3, {"axis -3"});
  invalid_gather(matrices, 0, {testing::full_name(1), "[2,1]", "[1,2]", "axis 0"});
  invalid_gather(list({testing::vector_of<float>({1}, "CPU:0"), scalar(1.0F, "CPU:1")}), 0, {"[]", "[1]"});
  invalid_gather(list({testing::vector_of<float>({1}, "CPU:0"), testing::vector_of<double>({1}, "CPU:1")}), 0,
                 {"float64"});
  const IndexedSlices sparse = testing::slices({{1}}, {0}, {}, "CPU:1");
  expect_error([&] { ops_.gather(PerReplica(sparse), "CPU:0", 0); }, ErrorCode::kUnimplemented,
               {"gather", "IndexedSlices"});
  const PerReplica mixed(std::vector<Value>{Tensor::from<float>({1}, {1, 1}, "CPU:0"), sparse});
  expect_error([&] { ops_.gather(mixed, "CPU:0", 0); }, ErrorCode::kUnimplemented,
               {"gather", "IndexedSlices"});
}

// 5.5
TEST_F(Refused, Broadcasts) {
  expect_error([&] { ops_.broadcast(scalar(1.0F, "CPU:0"), "CPU:0", 1); }, ErrorCode::kInvalidArgument,
               {"root 1", "1 worker"});
  expect_error([&] { ops_.broadcast(scalar(1.0F, "CPU:0"), "CPU:0", -1); }, ErrorCode::kInvalidArgument,
               {"root -1"});
  expect_error([&] { ops_.broadcast(scalar(1.0F, "/job:w/CPU:0"), "CPU:0"); }, ErrorCode::kInvalidArgument,
               {"/job:w"});
}

TEST_F(Refused, PlansOfNothing) {
  expect_error([&] { ops_.plan(ReduceOp::kSum, std::span<const ValueDestination>()); },
               ErrorCode::kInvalidArgument, {"no pairs"});
  expect_error([&] { ops_.explain(ReduceOp::kSum, {}); }, ErrorCode::kInvalidArgument, {"no pairs"});
}

// One bad pair refuses the batch before any of it is done.
TEST_F(Refused, ABatchWithOneBadPairLeavesEverythingAsItWas) {
  const std::vector<PerReplica> values{scalars<float>({1, 2}),
                                       list({scalar(1.0F, "CPU:0"), scalar(1.0, "CPU:1")})};
  std::vector<PerReplica> results{scalars<float>({-1, -1}), scalars<float>({-1, -1})};
  expect_error([&] { ops_.batch_reduce_into(ReduceOp::kSum, values, results); }, ErrorCode::kInvalidArgument,
               {"pair 1"});
  EXPECT_EQ(contents<float>(results[0].tensor(0)), std::vector<float>{-1});
  EXPECT_EQ(ops_.last_call().number, 0U);
}

}  // namespace
}  // namespace onesum
