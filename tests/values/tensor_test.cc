// docs/semantics.md, rule 2.3.
#include <array>
#include <complex>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/tensor.h>

#include "api/engines.h"
#include "api/tensor_state.h"
#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_error;
using testing::expect_invalid;

TEST(Tensor, RefersToNothingAtFirst) {
  const Tensor tensor;
  EXPECT_FALSE(tensor);
  EXPECT_EQ(tensor.state(), nullptr);
  expect_invalid([&] { tensor.dtype(); }, {"dtype()", "refers to nothing"});
  expect_invalid([&] { tensor.shape(); }, {"shape()"});
  expect_invalid([&] { tensor.device(); }, {"device()"});
  expect_invalid([&] { tensor.bytes(); }, {"bytes()"});
  expect_invalid([&] { tensor.memory(); }, {"memory()"});
  expect_invalid([&] { tensor.data<float>(); }, {"data()"});
  expect_invalid([&] { tensor.reshaped({1}); }, {"reshaped()"});
  expect_invalid([&] { tensor.to_dlpack(); }, {"refers to nothing"});
}

TEST(Tensor, EmptyHasTypeShapeAndDevice) {
  const Tensor tensor = Tensor::empty(DType::kInt16, {2, 3}, "cpu:1");
  EXPECT_TRUE(tensor);
  EXPECT_EQ(tensor.dtype(), DType::kInt16);
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.device(), Device("/device:CPU:1"));
  EXPECT_EQ(tensor.bytes(), 12U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.memory()) % 64, 0U);
}

TEST(Tensor, EveryTypeCanBeMadeAndRead) {
  const auto round_trip = []<class T>(T value) {
    const Tensor tensor = Tensor::from<T>({value, value}, {2}, "CPU:0");
    EXPECT_EQ(tensor.dtype(), kDTypeOf<T>);
    EXPECT_EQ(tensor.data<T>().size(), 2U);
    EXPECT_EQ(tensor.data<T>()[1], value);
  };
  round_trip(true);
  round_trip(std::uint8_t{200});
  round_trip(std::int8_t{-100});
  round_trip(std::uint16_t{60000});
  round_trip(std::int16_t{-30000});
  round_trip(std::uint32_t{4000000000});
  round_trip(std::int32_t{-2000000000});
  round_trip(~std::uint64_t{0});
  round_trip(std::int64_t{-1} << 62);
  round_trip(Float16::from_float(1.5F));
  round_trip(BFloat16::from_float(-2.5F));
  round_trip(1.25F);
  round_trip(-1e300);
  round_trip(std::complex<float>(1, -2));
  round_trip(std::complex<double>(3, -4));
}

TEST(Tensor, FromCopies) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::from<float>(values, {2, 3}, "CPU:0");
  values[0] = 100;
  EXPECT_EQ(tensor.data<float>()[0], 1);
  EXPECT_EQ(tensor.data<float>()[5], 6);
}

TEST(Tensor, ScalarsAndEmptyOnes) {
  const Tensor scalar = Tensor::from<double>({7}, {}, "CPU:0");
  EXPECT_EQ(scalar.bytes(), 8U);
  EXPECT_EQ(scalar.data<double>()[0], 7);
  const Tensor nothing = Tensor::from<double>({}, {3, 0}, "CPU:0");
  EXPECT_EQ(nothing.bytes(), 0U);
  EXPECT_EQ(nothing.data<double>().size(), 0U);
  EXPECT_TRUE(Tensor::borrow(nullptr, DType::kFloat32, {0}, "CPU:0"));
}

TEST(Tensor, TheNumberOfValuesMustFit) {
  expect_invalid([] { Tensor::from<float>({1, 2, 3, 4, 5}, {2, 3}, "CPU:0"); }, {"5 values", "[2,3]", "6"});
  expect_invalid([] { Tensor::from<float>({}, {}, "CPU:0"); }, {"0 values", "[]", "1"});
}

TEST(Tensor, HandlesShareTheirMemory) {
  Tensor first = Tensor::from<float>({1, 2}, {2}, "CPU:0");
  const Tensor second = first;
  first.data<float>()[0] = 9;
  EXPECT_EQ(second.data<float>()[0], 9);
  EXPECT_EQ(first.memory(), second.memory());
  first = Tensor();
  EXPECT_EQ(second.data<float>()[1], 2);
}

TEST(Tensor, BorrowsTheCallersMemory) {
  std::array<std::int32_t, 4> memory = {1, 2, 3, 4};
  {
    Tensor tensor = Tensor::borrow(memory.data(), DType::kInt32, {2, 2}, "CPU:0");
    EXPECT_EQ(tensor.memory(), memory.data());
    tensor.data<std::int32_t>()[3] = 40;
  }
  EXPECT_EQ(memory[3], 40);
  expect_invalid([] { Tensor::borrow(nullptr, DType::kInt32, {2, 2}, "CPU:0"); },
                 {"null", "[2,2]", "int32", "16"});
}

TEST(Tensor, BorrowedMemoryMayHaveAnyAlignmentButIsNotReadInPlaceThen) {
  std::array<std::byte, 32> memory{};
  const Tensor odd = Tensor::borrow(memory.data() + 1, DType::kInt8, {4}, "CPU:0");
  EXPECT_EQ(odd.data<std::int8_t>().size(), 4U);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
  std::byte* const unaligned = memory.data() + (base % 2 == 0 ? 1 : 0);
  const Tensor tensor = Tensor::borrow(unaligned, DType::kFloat32, {2}, "CPU:0");
  expect_invalid([&] { tensor.data<float>(); }, {"float32", "aligned to 4"});
}

TEST(Tensor, ReshapedSharesAndKeepsTheMemory) {
  Tensor flat = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6}, "CPU:2");
  const Tensor square = flat.reshaped({2, 3}).reshaped({3, 2});
  EXPECT_EQ(square.shape(), (Shape{3, 2}));
  EXPECT_EQ(square.device(), Device("CPU:2"));
  EXPECT_EQ(square.memory(), flat.memory());
  flat = Tensor();
  EXPECT_EQ(square.data<float>()[5], 6);
  expect_invalid([&] { square.reshaped({7}); }, {"[7]", "7 elements", "[3,2]", "6"});
  EXPECT_EQ(Tensor::from<float>({1}, {1}, "CPU:0").reshaped({}).shape(), Shape());
}

TEST(Tensor, ReshapedBorrowsWhatWasBorrowed) {
  std::array<float, 4> memory{};
  const Tensor tensor = Tensor::borrow(memory.data(), DType::kFloat32, {4}, "CPU:0").reshaped({2, 2});
  EXPECT_EQ(tensor.memory(), memory.data());
}

TEST(Tensor, DataWantsTheTensorsTypeAndACpu) {
  const Tensor tensor = Tensor::from<float>({1}, {1}, "CPU:3");
  expect_invalid([&] { tensor.data<double>(); }, {"float64", "float32", "CPU:3"});
  expect_invalid([&] { tensor.data<std::int32_t>(); }, {"int32", "float32"});
  float memory = 0;
  const Tensor far = Tensor::borrow(&memory, DType::kFloat32, {1}, "GPU:1");
  expect_invalid([&] { far.data<float>(); }, {"GPU:1", "CPU"});
}

// 1.6
TEST(Tensor, DevicesWithoutEngineAreUnavailable) {
  expect_error([] { Tensor::empty(DType::kFloat32, {1}, "GPU:0"); }, ErrorCode::kUnavailable,
               {"/device:GPU:0", "no GPU was found"});
  expect_error([] { Tensor::from<float>({1}, {1}, "TPU:0"); }, ErrorCode::kUnavailable, {"TPU"});
}

TEST(Tensor, ADeviceMustBeNamed) {
  expect_invalid([] { Tensor::empty(DType::kFloat32, {1}, Device()); }, {"device is empty", "CPU:0"});
  EXPECT_TRUE(Tensor::empty(DType::kFloat32, {1}, "/task:0"));
}

TEST(Tensor, RefusesImpossibleTypesAndSizes) {
  expect_invalid([] { Tensor::empty(static_cast<DType>(99), {1}, "CPU:0"); }, {"dtype 99"});
  expect_invalid([] { Tensor::borrow(nullptr, static_cast<DType>(99), {0}, "CPU:0"); }, {"dtype 99"});
  const std::int64_t many = std::int64_t{1} << 61;
  expect_invalid([=] { Tensor::empty(DType::kFloat64, {many}, "CPU:0"); }, {"float64", "more bytes"});
  expect_error([=] { Tensor::empty(DType::kInt8, {many}, "CPU:0"); }, ErrorCode::kResourceExhausted, {});
}

// What a plan cache relies on.
TEST(TensorState, TheSignatureIsThatOfTypeShapeAndDevice) {
  const auto signature = [](DType dtype, Shape shape, const char* device) {
    return Tensor::empty(dtype, std::move(shape), device).state()->signature;
  };
  const std::uint64_t one = signature(DType::kFloat32, {2, 3}, "CPU:0");
  EXPECT_EQ(signature(DType::kFloat32, {2, 3}, "/device:cpu:0"), one);
  EXPECT_NE(signature(DType::kInt32, {2, 3}, "CPU:0"), one);
  EXPECT_NE(signature(DType::kFloat32, {3, 2}, "CPU:0"), one);
  EXPECT_NE(signature(DType::kFloat32, {6}, "CPU:0"), one);
  EXPECT_NE(signature(DType::kFloat32, {2, 3, 1}, "CPU:0"), one);
  EXPECT_NE(signature(DType::kFloat32, {2, 3}, "CPU:1"), one);
  EXPECT_EQ(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6}, "CPU:0").reshaped({2, 3}).state()->signature, one);
}

TEST(Tensor, HandlesMayGoOnAnyThread) {
  Tensor tensor = Tensor::from<float>({1, 2}, {2}, "CPU:0");
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([tensor] {
      for (int i = 0; i < 200; ++i) {
        const Tensor copy = tensor.reshaped({2, 1});
        const Tensor fresh = Tensor::empty(DType::kFloat32, {64}, "CPU:0");
        ASSERT_EQ(copy.data<float>()[1], 2);
        ASSERT_NE(fresh.memory(), copy.memory());
      }
    });
  }
}

TEST(Engines, OneForAllCpus) {
  EXPECT_EQ(&api::engine_of("CPU:0"), &api::engine_of("/job:worker/task:3/cpu:7"));
  EXPECT_EQ(&api::engine_of("/task:0"), &api::host_engine());
  EXPECT_EQ(api::host_engine().device_type(), "CPU");
}

// In a process of its own: the engines are created once.
TEST(EnginesDeathTest, BadSettingsSurfaceAtFirstUse) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("ONESUM_THREADS", "many", 1);
        int errors = 0;
        for (int i = 0; i < 2; ++i) {
          try {
            Tensor::empty(DType::kFloat32, {1}, "CPU:0");
          } catch (const Error& error) {
            const bool named = std::strstr(error.what(), "ONESUM_THREADS is \"many\"") != nullptr;
            errors += named && error.code() == ErrorCode::kInvalidArgument ? 1 : 0;
          }
        }
        std::exit(errors == 2 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// Static objects are destroyed in an order that nobody controls; their memory must still have somewhere to
// go.
TEST(EnginesDeathTest, TensorsInStaticObjectsMayOutliveEverythingElse) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        static Tensor kept;  // constructed before the engine, so destroyed after what was made later
        kept = Tensor::from<float>({1, 2, 3}, {3}, "CPU:0");
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace onesum
