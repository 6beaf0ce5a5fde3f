#include <limits>
#include <string>
#include <utility>

#include <onesum/error.h>
#include <onesum/tensor.h>

#include "api/copies.h"
#include "api/engines.h"
#include "api/tensor_state.h"
#include "base/hash.h"

namespace onesum {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

std::uint64_t signature_of(DType dtype, const Shape& shape, const Device& device) noexcept {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(dtype) | static_cast<std::uint64_t>(shape.rank()) << 8);
  for (const std::int64_t extent : shape.extents()) hasher.add(static_cast<std::uint64_t>(extent));
  hasher.add(device.hash());
  return hasher.finish().low;
}

const Tensor::State& checked(const Tensor::State* state, const char* what) {
  if (state == nullptr) refuse(std::string(what) + " of a Tensor that refers to nothing");
  return *state;
}

void release_to_pool(const Tensor::State& state) noexcept {
  static_cast<engine::DeviceEngine*>(state.owner)->release(state.memory, state.bytes);
}

std::size_t alignment_of(DType dtype) noexcept {
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  return is_complex ? size_of(dtype) / 2 : size_of(dtype);
}

std::string_view type_of(const Device& device) noexcept {
  return device.type() ? std::string_view(*device.type()) : "CPU";
}

}  // namespace

Tensor::State::State(const char* what, DType dtype_given, Shape shape_given, const Device& device_given)
    : dtype(dtype_given), shape(std::move(shape_given)), device(device_given) {
  const std::size_t size = size_of(dtype);
  if (size == 0)
    refuse(std::string(what) + ": dtype " + std::to_string(static_cast<int>(dtype)) + " is not known");
  if (device.is_empty()) refuse(std::string(what) + ": the device is empty; expected one such as CPU:0");
  if (shape.elements() > std::numeric_limits<std::ptrdiff_t>::max() / size) {
    refuse(std::string(what) + ": shape " + shape.to_string() + " of " + std::string(to_string(dtype)) +
           " has more bytes than there are addresses");
  }
  bytes = shape.elements() * size;
  signature = signature_of(dtype, shape, device);
}

namespace api {

void set_stream(Tensor::State& state, std::optional<void*> stream, const char* what) {
  if (stream && queued_engine_of(state.device) == nullptr) {
    refuse(std::string(what) + ": a stream is given for memory on " + state.device.to_string() +
           "; expected one of a GPU's");
  }
  state.stream = stream;
}

}  // namespace api

Tensor Tensor::empty(DType dtype, Shape shape, const Device& device) {
  engine::DeviceEngine& engine = api::engine_of(device);
  auto state = std::make_shared<State>("Tensor::empty", dtype, std::move(shape), device);
  state->memory = engine.allocate(state->bytes);
  state->owner = &engine;
  state->release = release_to_pool;
  return Tensor(std::move(state));
}

Tensor Tensor::from_bytes(DType dtype, std::span<const std::byte> bytes, Shape shape, const Device& device) {
  const std::size_t values = bytes.size() / size_of(dtype);
  if (values != shape.elements()) {
    refuse("Tensor::from: " + std::to_string(values) + " values given, shape " + shape.to_string() + " has " +
           std::to_string(shape.elements()));
  }
  Tensor tensor = empty(dtype, std::move(shape), device);
  // Copying only reads it.
  auto* const given = const_cast<std::byte*>(bytes.data());
  api::copy(borrow(given, dtype, tensor.shape(), "CPU:0"), tensor);
  return tensor;
}

Tensor Tensor::borrow(void* memory, DType dtype, Shape shape, const Device& device,
                      std::optional<void*> stream, std::shared_ptr<const void> owner) {
  auto state = std::make_shared<State>("Tensor::borrow", dtype, std::move(shape), device);
  api::set_stream(*state, stream, "Tensor::borrow");
  if (memory == nullptr && state->bytes > 0) {
    refuse("Tensor::borrow: the memory is null, shape " + state->shape.to_string() + " of " +
           std::string(to_string(dtype)) + " needs " + std::to_string(state->bytes) + " bytes");
  }
  state->memory = memory;
  state->keeper = std::move(owner);
  return Tensor(std::move(state));
}

Tensor Tensor::copied_to(const Device& device) const {
  checked(state_.get(), "copied_to()");
  return api::copy_on(*this, device);
}

Tensor Tensor::reshaped(Shape shape) const {
  const State& old = checked(state_.get(), "reshaped()");
  if (shape.elements() != old.shape.elements()) {
    refuse("reshaped(): shape " + shape.to_string() + " has " + std::to_string(shape.elements()) +
           " elements, the tensor's " + old.shape.to_string() + " has " +
           std::to_string(old.shape.elements()));
  }
  auto state = std::make_shared<State>("reshaped()", old.dtype, std::move(shape), old.device);
  state->memory = old.memory;
  state->stream = old.stream;
  state->keeper = old.keeper != nullptr ? old.keeper : state_;
  return Tensor(std::move(state));
}

DType Tensor::dtype() const { return checked(state_.get(), "dtype()").dtype; }

const Shape& Tensor::shape() const { return checked(state_.get(), "shape()").shape; }

const Device& Tensor::device() const { return checked(state_.get(), "device()").device; }

std::size_t Tensor::bytes() const { return checked(state_.get(), "bytes()").bytes; }

void* Tensor::memory() const { return checked(state_.get(), "memory()").memory; }

void* Tensor::typed_memory(DType dtype) const {
  const State& state = checked(state_.get(), "data()");
  if (state.dtype != dtype) {
    refuse("data() as " + std::string(to_string(dtype)) + " of a tensor of " +
           std::string(to_string(state.dtype)) + " on " + state.device.to_string());
  }
  if (type_of(state.device) != "CPU") {
    refuse("data() of a tensor on " + state.device.to_string() +
           ": only the memory of CPUs can be read directly");
  }
  if (reinterpret_cast<std::uintptr_t>(state.memory) % alignment_of(dtype) != 0) {
    refuse("data() of a tensor of " + std::string(to_string(dtype)) + " on " + state.device.to_string() +
           ": its borrowed memory is not aligned to " + std::to_string(alignment_of(dtype)) + " bytes");
  }
  return state.memory;
}

}  // namespace onesum
