// Tensors of other libraries, through DLPack (https://dmlc.github.io/dlpack).
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include <onesum/error.h>
#include <onesum/tensor.h>

#include "api/engines.h"
#include "api/tensor_state.h"

namespace onesum {
namespace {

constexpr std::uint8_t kBoolCode = 6;  // kDLBool, which headers before DLPack 1.0 lack

struct TypeCode {
  std::uint8_t code;
  std::uint8_t bits;
};

// By the number of the DType.
constexpr std::array<TypeCode, kNumDTypes> kTypeCodes = {{
    {kBoolCode, 8},
    {kDLUInt, 8},
    {kDLInt, 8},
    {kDLUInt, 16},
    {kDLInt, 16},
    {kDLUInt, 32},
    {kDLInt, 32},
    {kDLUInt, 64},
    {kDLInt, 64},
    {kDLFloat, 16},
    {kDLBfloat, 16},
    {kDLFloat, 32},
    {kDLFloat, 64},
    {kDLComplex, 64},
    {kDLComplex, 128},
}};

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorCode::kInvalidArgument, "from_dlpack: " + problem);
}

DType dtype_of(DLDataType type) {
  if (type.lanes != 1) refuse("elements of " + std::to_string(type.lanes) + " lanes; expected 1");
  for (std::size_t i = 0; i < kTypeCodes.size(); ++i) {
    if (type.code == kTypeCodes[i].code && type.bits == kTypeCodes[i].bits) return static_cast<DType>(i);
  }
  refuse("elements of type code " + std::to_string(type.code) + " with " + std::to_string(type.bits) +
         " bits are not known to onesum");
}

// Newer libraries give kinds that the enumeration of our header cannot hold: the number is read as one.
int kind_of(const DLDevice& device) noexcept {
  static_assert(sizeof(device.device_type) == sizeof(int));
  int kind = 0;
  std::memcpy(&kind, &device.device_type, sizeof(kind));
  return kind;
}

Device device_of(const DLDevice& device) {
  const int kind = kind_of(device);
  if (kind != kDLCPU && kind != kDLCUDA) {
    refuse("memory of device type " + std::to_string(kind) + "; expected " + std::to_string(kDLCPU) +
           " (CPU) or " + std::to_string(kDLCUDA) + " (CUDA)");
  }
  if (device.device_id < 0)
    refuse("device id " + std::to_string(device.device_id) + "; expected zero or more");
  return Device((kind == kDLCUDA ? "GPU:" : "CPU:") + std::to_string(device.device_id));
}

Shape shape_of(const DLTensor& tensor) {
  if (tensor.ndim < 0) refuse(std::to_string(tensor.ndim) + " dimensions; expected zero or more");
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    refuse("the shape is null; expected " + std::to_string(tensor.ndim) + " extents");
  }
  return Shape(std::span<const std::int64_t>(tensor.shape, static_cast<std::size_t>(tensor.ndim)));
}

// Row-major strides, in elements.
std::vector<std::int64_t> dense_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.rank());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = stride;
    if (shape[axis] > 0) stride *= shape[axis];
  }
  return strides;
}

// The stride of an axis that is never stepped along means nothing: extents of 1, and all of them in empty
// tensors.
void check_dense(const Shape& shape, const std::int64_t* strides) {
  if (strides == nullptr || shape.elements() == 0) return;
  const std::vector<std::int64_t> expected = dense_strides(shape);
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1 || strides[axis] == expected[axis]) continue;
    refuse("shape " + shape.to_string() + " with stride " + std::to_string(strides[axis]) + " along axis " +
           std::to_string(axis) + " is not dense and row-major; expected stride " +
           std::to_string(expected[axis]) + ": pass a contiguous copy");
  }
}

// What to_dlpack's deleter frees: the handle that keeps the memory, and the arrays that the DLTensor points
// to.
struct Exported {
  DLManagedTensor managed{};
  Tensor tensor;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
};

void delete_exported(DLManagedTensor* managed) { delete static_cast<Exported*>(managed->manager_ctx); }

DLDevice exported_device(const Device& device) {
  const int index = device.index().value_or(0);
  if (!device.type() || *device.type() == "CPU") return {kDLCPU, index};
  if (*device.type() == "GPU") return {kDLCUDA, index};
  throw Error(ErrorCode::kUnimplemented,
              "to_dlpack: memory of " + device.to_string() + "; expected a CPU or a GPU");
}

}  // namespace

Tensor Tensor::from_dlpack(DLManagedTensor* managed, std::optional<void*> stream) {
  if (managed == nullptr) refuse("the managed tensor is null");
  const DLTensor& given = managed->dl_tensor;
  const DType dtype = dtype_of(given.dtype);
  const Device device = device_of(given.device);
  if (const std::string reason = api::why_not_served(device); !reason.empty()) {
    throw Error(ErrorCode::kUnavailable, "from_dlpack: memory of " + device.to_string() + ": " + reason);
  }
  auto state = std::make_shared<State>("from_dlpack", dtype, shape_of(given), device);
  api::set_stream(*state, stream, "from_dlpack");
  check_dense(state->shape, given.strides);
  if (given.data == nullptr && state->bytes > 0) {
    refuse("the memory is null, shape " + state->shape.to_string() + " needs " +
           std::to_string(state->bytes) + " bytes");
  }
  if (given.data != nullptr) state->memory = static_cast<std::byte*>(given.data) + given.byte_offset;
  state->owner = managed;  // from here on ours
  state->release = [](const State& gone) noexcept {
    auto* const owned = static_cast<DLManagedTensor*>(gone.owner);
    if (owned->deleter != nullptr) owned->deleter(owned);
  };
  return Tensor(std::move(state));
}

DLManagedTensor* Tensor::to_dlpack() const {
  auto exported = std::make_unique<Exported>();
  exported->tensor = *this;
  exported->extents.assign(shape().extents().begin(), shape().extents().end());
  exported->strides = dense_strides(shape());
  const TypeCode type = kTypeCodes[static_cast<std::size_t>(dtype())];
  DLTensor& tensor = exported->managed.dl_tensor;
  tensor.data = memory();
  tensor.device = exported_device(device());
  tensor.ndim = static_cast<int>(shape().rank());
  tensor.dtype = {type.code, type.bits, 1};
  tensor.shape = exported->extents.data();
  tensor.strides = exported->strides.data();
  tensor.byte_offset = 0;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = delete_exported;
  return &exported.release()->managed;
}

}  // namespace onesum
