// Variables inside and outside of scopes and replicas.
#include "strategy/support.h"

namespace onesum {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Variables : public StrategyTest {
 protected:
  std::vector<float> components_of(const Variable& variable) {
    std::vector<float> result;
    for (const Tensor& component : variable.components()) result.push_back(number(component));
    return result;
  }

  MirroredStrategy strategy_{{"CPU:2", "CPU:0", "CPU:1"}};
};

TEST_F(Variables, MadeInAScopeAreMirroredOnItsDevices) {
  Tensor initial = scalar(5, "CPU:7");
  const auto scope = strategy_.scope();
  const Variable variable("weights", initial);
  initial.data<float>()[0] = 6;
  EXPECT_EQ(variable.name(), "weights");
  EXPECT_TRUE(variable.is_mirrored());
  EXPECT_THAT(components_of(variable), ElementsAre(5, 5, 5));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(variable.devices()[i], strategy_.devices()[i]);
}

TEST_F(Variables, MadeOutsideAreOnTheDeviceOfTheirInitialValue) {
  {
    const auto scope = strategy_.scope();
  }
  const Tensor initial = scalar(5, "CPU:7");
  const Variable variable("v", initial);
  EXPECT_FALSE(variable.is_mirrored());
  ASSERT_EQ(variable.components().size(), 1u);
  EXPECT_EQ(variable.devices()[0], initial.device());
  EXPECT_NE(variable.value().memory(), initial.memory());
}

TEST_F(Variables, AScopeIsOfItsThread) {
  const auto scope = strategy_.scope();
  std::thread([] { EXPECT_FALSE(Variable("v", scalar(0, "CPU:0")).is_mirrored()); }).join();
}

TEST_F(Variables, ScopesNestInThemselvesAndNotInOthers) {
  MirroredStrategy other(cpus(2));
  const auto outer = strategy_.scope();
  {
    const auto inner = strategy_.scope();
    EXPECT_THAT(error_of([&] { const auto refused = other.scope(); }),
                IsError(ErrorCode::kInvalidArgument, HasSubstr("scope of another strategy")));
  }
  EXPECT_TRUE(Variable("v", scalar(0, "CPU:0")).is_mirrored());
}

TEST_F(Variables, OfAStrategyWithOneDeviceAreMirroredToo) {
  MirroredStrategy single({"CPU:3"});
  const auto scope = single.scope();
  const Variable variable("v", scalar(1, "CPU:0"));
  EXPECT_TRUE(variable.is_mirrored());
  EXPECT_EQ(variable.devices()[0], Device("CPU:3").canonical());
}

TEST_F(Variables, ReadAndAssignTheReplicasOwnComponent) {
  const auto scope = strategy_.scope();
  Variable variable("v", scalar(1, "CPU:0"));
  strategy_.run([&](ReplicaContext& replica) {
    EXPECT_EQ(variable.value().device(), replica.device());
    if (replica.replica_id() != 1)
      variable.assign(scalar(static_cast<float>(10 + replica.replica_id()), replica.device()));
  });
  EXPECT_THAT(components_of(variable), ElementsAre(10, 1, 12));
  EXPECT_EQ(number(variable.value()), 10);
}

TEST_F(Variables, AssignInCrossReplicaContextWritesEveryComponent) {
  const auto scope = strategy_.scope();
  Variable variable("v", scalar(1, "CPU:0"));
  variable.assign(scalar(2, "CPU:5"));
  EXPECT_THAT(components_of(variable), ElementsAre(2, 2, 2));
  variable.assign(variable.components()[1]);
  EXPECT_THAT(components_of(variable), ElementsAre(2, 2, 2));
}

TEST_F(Variables, AMirroredGivesEachComponentTheCopyOnItsDevice) {
  const auto scope = strategy_.scope();
  Variable variable("v", scalar(0, "CPU:0"));
  const Mirrored value(
      std::vector<Value>{scalar(0, "CPU:0"), scalar(1, "CPU:1"), scalar(2, "CPU:2"), scalar(3, "CPU:3")});
  variable.assign(value);
  EXPECT_THAT(components_of(variable), ElementsAre(2, 0, 1));
  variable.assign(Mirrored(std::vector<Value>{scalar(9, "CPU:8")}));
  EXPECT_THAT(components_of(variable), ElementsAre(9, 9, 9));
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id() == 2) variable.assign(value);
  });
  EXPECT_THAT(components_of(variable), ElementsAre(9, 9, 1));
}

TEST_F(Variables, AMirroredThatLacksADeviceChangesNothing) {
  const auto scope = strategy_.scope();
  Variable variable("v", scalar(0, "CPU:0"));
  EXPECT_THAT(error_of([&] {
                variable.assign(Mirrored(std::vector<Value>{scalar(1, "CPU:2"), scalar(1, "CPU:0")}));
              }),
              IsError(ErrorCode::kInvalidArgument, AllOf(HasSubstr("'v'"), HasSubstr("device:CPU:1"))));
  EXPECT_THAT(components_of(variable), ElementsAre(0, 0, 0));
}

TEST_F(Variables, ShapeAndTypeMustBeTheVariables) {
  const auto scope = strategy_.scope();
  Variable variable("v", tensor_of({1, 2}, "CPU:0"));
  EXPECT_THAT(error_of([&] { variable.assign(tensor_of({1, 2, 3}, "CPU:0")); }),
              IsError(ErrorCode::kInvalidArgument,
                      HasSubstr("variable 'v' is float32 [2] and cannot be assigned float32 [3]")));
  EXPECT_THAT(error_of([&] { variable.assign(Tensor::from<double>({1, 2}, {2}, "CPU:0")); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("float64 [2]")));
  EXPECT_THAT(error_of([&] { variable.assign(Tensor()); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("refers to nothing")));
  EXPECT_THAT(error_of([&] { const Variable empty("e", Tensor()); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("variable 'e': its initial value")));
}

TEST_F(Variables, PlainOnesCanBeReadByAllReplicasAndWrittenByTheOneOnTheirDevice) {
  Variable variable("v", scalar(1, "CPU:1"));
  const auto assign_from = [&](int id) {
    strategy_.run([&](ReplicaContext& replica) {
      EXPECT_EQ(number(variable.value()), 1);
      replica.merge_call([](MirroredStrategy&, std::span<const PerReplica>) {});
      if (replica.replica_id() == id) variable.assign(scalar(1, replica.device()));
    });
  };
  assign_from(2);  // is on CPU:1
  EXPECT_THAT(error_of([&] { assign_from(0); }),
              IsError(ErrorCode::kInvalidArgument,
                      AllOf(HasSubstr("variable 'v' has no component on"),
                            HasSubstr("CPU:2, the device of replica 0"), HasSubstr("scope"))));
}

TEST_F(Variables, OfOtherDevicesAreRefusedInReplicas) {
  const std::vector<Device> devices = {"CPU:4", "CPU:5"};
  const MirroredVariable variable("elsewhere", scalar(1, "CPU:0"), devices);
  EXPECT_EQ(number(variable.value()), 1);
  EXPECT_THAT(error_of([&] { strategy_.run([&](ReplicaContext&) { return variable.value(); }); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("'elsewhere' has no component on")));
}

TEST_F(Variables, MirroredVariablesNameTheirDevices) {
  const std::vector<Device> devices = {"CPU:1", "CPU:0"};
  const MirroredVariable variable("m", scalar(3, "CPU:0"), devices);
  EXPECT_TRUE(variable.is_mirrored());
  EXPECT_EQ(variable.devices(), devices);
  EXPECT_THAT(components_of(variable), ElementsAre(3, 3));
  const std::vector<Device> twice = {"CPU:1", "/job:localhost/CPU:1"};
  EXPECT_THAT(error_of([&] { MirroredVariable("t", scalar(3, "CPU:0"), twice); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("'t' is mirrored on")));
  EXPECT_THAT(error_of([&] { MirroredVariable("n", scalar(3, "CPU:0"), {}); }),
              IsError(ErrorCode::kInvalidArgument, HasSubstr("'n' is mirrored on no devices")));
}

TEST_F(Variables, CopiesAreHandles) {
  Variable variable("v", scalar(1, "CPU:0"));
  const Variable same = variable;
  variable.assign(scalar(2, "CPU:0"));
  EXPECT_EQ(number(same.value()), 2);
}

TEST_F(Variables, TrainingKeepsComponentsEqual) {
  const auto scope = strategy_.scope();
  Variable weights("w", tensor_of({0, 0}, "CPU:0"));
  for (int step = 0; step < 20; ++step) {
    strategy_.run([&](ReplicaContext& replica) {
      const auto id = static_cast<float>(replica.replica_id());
      const Tensor gradient =
          replica.all_reduce(ReduceOp::kMean, tensor_of({id, 0.1F * id}, replica.device()));
      Tensor updated = tensor_of(numbers(weights.value()), replica.device());
      for (std::size_t i = 0; i < 2; ++i) updated.data<float>()[i] -= numbers(gradient)[i];
      weights.assign(updated);
    });
  }
  EXPECT_EQ(numbers(weights.components()[0])[0], -20);
  EXPECT_EQ(numbers(weights.components()[0]), numbers(weights.components()[1]));
  EXPECT_EQ(numbers(weights.components()[0]), numbers(weights.components()[2]));
}

}  // namespace
}  // namespace onesum
