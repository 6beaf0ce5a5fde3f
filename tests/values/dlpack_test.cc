// docs/semantics.md, rule 2.4.
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <onesum/tensor.h>

#include "support/expect_error.h"

namespace onesum {
namespace {

using testing::expect_error;
using testing::expect_invalid;

struct CodeRow {
  DType dtype;
  int code;
  int bits;
};
constexpr std::array<CodeRow, kNumDTypes> kCodes = {{
    {DType::kBool, 6, 8},
    {DType::kUInt8, kDLUInt, 8},
    {DType::kInt8, kDLInt, 8},
    {DType::kUInt16, kDLUInt, 16},
    {DType::kInt16, kDLInt, 16},
    {DType::kUInt32, kDLUInt, 32},
    {DType::kInt32, kDLInt, 32},
    {DType::kUInt64, kDLUInt, 64},
    {DType::kInt64, kDLInt, 64},
    {DType::kFloat16, kDLFloat, 16},
    {DType::kBFloat16, kDLBfloat, 16},
    {DType::kFloat32, kDLFloat, 32},
    {DType::kFloat64, kDLFloat, 64},
    {DType::kComplex64, kDLComplex, 64},
    {DType::kComplex128, kDLComplex, 128},
}};

// Another library's tensor: a float32 [2,3] on CPU 0 unless a test changes it. Counts calls of its deleter.
struct Foreign {
  Foreign() {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = memory.data();
    tensor.device = {kDLCPU, 0};
    tensor.dtype = {kDLFloat, 32, 1};
    set({2, 3}, nullptr);
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }

  void set(std::vector<std::int64_t> new_extents, const std::vector<std::int64_t>* new_strides) {
    extents = std::move(new_extents);
    managed.dl_tensor.ndim = static_cast<int>(extents.size());
    managed.dl_tensor.shape = extents.data();
    if (new_strides != nullptr) strides = *new_strides;
    managed.dl_tensor.strides = new_strides != nullptr ? strides.data() : nullptr;
  }

  Tensor import() { return Tensor::from_dlpack(&managed); }

  void expect_refused(std::initializer_list<std::string_view> parts,
                      std::source_location where = std::source_location::current()) {
    expect_invalid([&] { import(); }, parts, where);
    EXPECT_EQ(deleted, 0) << "what is refused stays the caller's";
  }

  std::array<float, 24> memory{};
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  DLManagedTensor managed{};
  int deleted = 0;
};

TEST(FromDlpack, TakesOverTheTensor) {
  Foreign foreign;
  {
    const Tensor tensor = foreign.import();
    EXPECT_EQ(tensor.dtype(), DType::kFloat32);
    EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
    EXPECT_EQ(tensor.device(), Device("CPU:0"));
    EXPECT_EQ(tensor.memory(), foreign.memory.data());
    EXPECT_EQ(tensor.data<float>()[5], 5);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDlpack, TheDeleterRunsOnceWithTheLastHandle) {
  Foreign foreign;
  Tensor reshaped;
  {
    const std::vector<Tensor> copies(3, foreign.import());
    reshaped = copies[1].reshaped({6});
  }
  EXPECT_EQ(foreign.deleted, 0);
  EXPECT_EQ(reshaped.data<float>()[4], 4);
  reshaped = Tensor();
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDlpack, ADeleterMayBeAbsent) {
  Foreign foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_TRUE(foreign.import());
}

TEST(FromDlpack, TakesEveryTypeOfOurs) {
  for (const CodeRow& row : kCodes) {
    Foreign foreign;
    foreign.managed.dl_tensor.dtype = {static_cast<std::uint8_t>(row.code),
                                       static_cast<std::uint8_t>(row.bits), 1};
    EXPECT_EQ(foreign.import().dtype(), row.dtype) << to_string(row.dtype);
  }
}

TEST(FromDlpack, RefusesOtherTypes) {
  for (const auto& [code, bits] : std::vector<std::pair<int, int>>{{kDLInt, 4},
                                                                   {kDLInt, 128},
                                                                   {kDLUInt, 1},
                                                                   {kDLFloat, 8},
                                                                   {kDLFloat, 128},
                                                                   {kDLBfloat, 32},
                                                                   {kDLComplex, 32},
                                                                   {kDLOpaqueHandle, 64},
                                                                   {6, 1},
                                                                   {6, 16},
                                                                   {7, 8},
                                                                   {17, 4},
                                                                   {255, 255}}) {
    Foreign foreign;
    foreign.managed.dl_tensor.dtype = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
    foreign.expect_refused({"type code " + std::to_string(code), std::to_string(bits) + " bits"});
  }
  for (const int lanes : {0, 2, 4}) {
    Foreign foreign;
    foreign.managed.dl_tensor.dtype.lanes = static_cast<std::uint16_t>(lanes);
    foreign.expect_refused({std::to_string(lanes) + " lanes"});
  }
}

TEST(FromDlpack, HonoursTheByteOffset) {
  Foreign foreign;
  foreign.managed.dl_tensor.byte_offset = 8;
  const Tensor tensor = foreign.import();
  EXPECT_EQ(tensor.data<float>()[0], 2);
  EXPECT_EQ(tensor.data<float>()[5], 7);
}

TEST(FromDlpack, TakesRowMajorStrides) {
  using Extents = std::vector<std::int64_t>;
  const std::vector<std::pair<Extents, Extents>> dense = {
      {{2, 3}, {3, 1}},        {{6}, {1}}, {{1, 6}, {77, 1}},  // an extent of 1 is never stepped along
      {{2, 1, 3}, {3, -5, 1}}, {{1}, {0}}, {{1, 1}, {9, 9}},
      {{0, 3}, {100, -7}},  // nothing is, in an empty tensor
      {{2, 0}, {0, 0}},        {{}, {}},
  };
  for (const auto& [extents, strides] : dense) {
    Foreign foreign;
    foreign.set(extents, &strides);
    const Tensor tensor = foreign.import();
    EXPECT_EQ(tensor.shape(), Shape(std::span<const std::int64_t>(extents)));
  }
}

TEST(FromDlpack, RefusesWhatIsNotDenseByName) {
  using Extents = std::vector<std::int64_t>;
  const std::vector<std::pair<Extents, Extents>> others = {
      {{2, 3}, {1, 2}},   // column-major
      {{2, 3}, {6, 2}},   // every other element
      {{2, 3}, {4, 1}},   // rows with a gap
      {{2, 3}, {0, 1}},   // a broadcast row
      {{2, 3}, {-3, 1}},  // upside down
      {{6}, {2}},
  };
  for (const auto& [extents, strides] : others) {
    Foreign foreign;
    foreign.set(extents, &strides);
    foreign.expect_refused(
        {Shape(std::span<const std::int64_t>(extents)).to_string(), "stride", "row-major"});
  }
}

TEST(FromDlpack, TheDeviceIdIsTheIndex) {
  Foreign foreign;
  foreign.managed.dl_tensor.device = {kDLCPU, 3};
  EXPECT_EQ(foreign.import().device(), Device("CPU:3"));
}

TEST(FromDlpack, RefusesOtherDevices) {
  Foreign negative;
  negative.managed.dl_tensor.device = {kDLCPU, -1};
  negative.expect_refused({"device id -1"});
  for (const int kind : {3, 4, 10, 12, 16, 99}) {
    Foreign foreign;
    std::memcpy(&foreign.managed.dl_tensor.device.device_type, &kind, sizeof(kind));
    foreign.expect_refused({"device type " + std::to_string(kind)});
  }
  Foreign gpu;
  gpu.managed.dl_tensor.device = {kDLCUDA, 1};
  expect_error([&] { gpu.import(); }, ErrorCode::kUnavailable, {"from_dlpack", "GPU:1", "no GPU was found"});
  EXPECT_EQ(gpu.deleted, 0);
}

TEST(FromDlpack, RefusesWhatIsMissing) {
  expect_invalid([] { Tensor::from_dlpack(nullptr); }, {"null"});
  Foreign no_memory;
  no_memory.managed.dl_tensor.data = nullptr;
  no_memory.expect_refused({"memory is null", "24 bytes"});
  Foreign no_shape;
  no_shape.managed.dl_tensor.shape = nullptr;
  no_shape.expect_refused({"shape is null", "2 extents"});
  Foreign bad_rank;
  bad_rank.managed.dl_tensor.ndim = -1;
  bad_rank.expect_refused({"-1 dimensions"});
  Foreign bad_extent;
  bad_extent.set({2, -3}, nullptr);
  bad_extent.expect_refused({"[2,-3]"});
  Foreign huge;
  huge.set({std::int64_t{1} << 62}, nullptr);
  huge.expect_refused({"more bytes"});
}

TEST(FromDlpack, EmptyTensorsNeedNoMemory) {
  Foreign foreign;
  foreign.set({0, 3}, nullptr);
  foreign.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(foreign.import().bytes(), 0U);
}

TEST(FromDlpack, AScalarNeedsNoShape) {
  Foreign foreign;
  foreign.managed.dl_tensor.ndim = 0;
  foreign.managed.dl_tensor.shape = nullptr;
  EXPECT_EQ(foreign.import().shape(), Shape());
}

TEST(ToDlpack, DescribesTheTensor) {
  const Tensor tensor = Tensor::from<float>({0, 1, 2, 3, 4, 5}, {2, 1, 3}, "CPU:2");
  DLManagedTensor* const managed = tensor.to_dlpack();
  const DLTensor& given = managed->dl_tensor;
  EXPECT_EQ(given.data, tensor.memory());
  EXPECT_EQ(given.byte_offset, 0U);
  EXPECT_EQ(given.device.device_type, kDLCPU);
  EXPECT_EQ(given.device.device_id, 2);
  ASSERT_EQ(given.ndim, 3);
  EXPECT_EQ(std::vector<std::int64_t>(given.shape, given.shape + 3), (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(std::vector<std::int64_t>(given.strides, given.strides + 3),
            (std::vector<std::int64_t>{3, 3, 1}));
  managed->deleter(managed);
}

TEST(ToDlpack, GivesEveryTypeOfOurs) {
  for (const CodeRow& row : kCodes) {
    DLManagedTensor* const managed = Tensor::empty(row.dtype, {2}, "CPU:0").to_dlpack();
    EXPECT_EQ(managed->dl_tensor.dtype.code, row.code) << to_string(row.dtype);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, row.bits) << to_string(row.dtype);
    EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1) << to_string(row.dtype);
    managed->deleter(managed);
  }
}

TEST(ToDlpack, KeepsTheMemoryUntilItsDeleterIsCalled) {
  Foreign foreign;
  DLManagedTensor* exported = nullptr;
  {
    const Tensor tensor = foreign.import();
    exported = tensor.to_dlpack();
  }
  EXPECT_EQ(foreign.deleted, 0);
  EXPECT_EQ(static_cast<const float*>(exported->dl_tensor.data)[1], 1);
  exported->deleter(exported);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(ToDlpack, ComesBackAsItWas) {
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 0}, Shape{1, 2, 3}}) {
    const Tensor tensor = Tensor::empty(DType::kBFloat16, shape, "CPU:1");
    const Tensor back = Tensor::from_dlpack(tensor.to_dlpack());
    EXPECT_EQ(back.shape(), shape);
    EXPECT_EQ(back.dtype(), DType::kBFloat16);
    EXPECT_EQ(back.device(), Device("CPU:1"));
    EXPECT_EQ(back.memory(), tensor.memory());
  }
}

TEST(ToDlpack, KnowsCpusAndGpus) {
  float memory = 0;
  DLManagedTensor* const gpu = Tensor::borrow(&memory, DType::kFloat32, {1}, "GPU:1").to_dlpack();
  EXPECT_EQ(gpu->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(gpu->dl_tensor.device.device_id, 1);
  gpu->deleter(gpu);
  const Tensor tpu = Tensor::borrow(&memory, DType::kFloat32, {1}, "TPU:1");
  expect_error([&] { tpu.to_dlpack(); }, ErrorCode::kUnimplemented, {"TPU:1"});
}

}  // namespace
}  // namespace onesum
