// Tensors: handles to memory on a device.
//
// Copying a Tensor copies the handle; both refer to the same memory. The memory is owned by onesum (shared by
// all handles, returned when the last one goes), or borrowed from the caller, who keeps it alive and unmoved
// while any handle or call uses it. Handles may be passed between threads; the contents are the caller's to
// synchronise.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/export.h>
#include <onesum/shape.h>

struct DLManagedTensor;

namespace onesum {

class ONESUM_API Tensor {
 public:
  Tensor() = default;  // refers to nothing; every call refuses it by name

  // Memory of the library, its contents unspecified. It comes from a pool that keeps its pages.
  static Tensor empty(DType dtype, Shape shape, const Device& device);

  // A copy of `values`, which must be as many as the shape has elements.
  template <class T>
  static Tensor from(std::span<const T> values, Shape shape, const Device& device) {
    return from_bytes(kDTypeOf<T>, std::as_bytes(values), std::move(shape), device);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, Shape shape, const Device& device) {
    return from(std::span<const T>(values.begin(), values.size()), std::move(shape), device);
  }

  // The caller's memory: dense, row-major, of any alignment. May be null only if the shape has no elements.
  //
  // `stream`, of GPUs only, is a stream of the caller's on that device (a cudaStream_t; null is the default
  // stream): a call waits, on the device, for what the stream was given before, and what it is given
  // afterwards waits for the call. Where every GPU's tensor of a call has one, the results included, and
  // nobody but this process's GPUs has work to do, the call returns as soon as they have been told. Without a
  // stream the memory must be ready, and a call returns when its results are.
  //
  // `owner` is let go with the last handle, on whatever thread that is; without one the caller keeps the
  // memory alive.
  static Tensor borrow(void* memory, DType dtype, Shape shape, const Device& device,
                       std::optional<void*> stream = {}, std::shared_ptr<const void> owner = {});

  // DLPack. from_dlpack takes over the managed tensor: its deleter runs when the last handle goes. What is
  // not dense and row-major, or of a type that onesum does not know, is refused by name and stays the
  // caller's. to_dlpack gives a managed tensor that keeps the memory alive until its deleter is called. CPU
  // memory with device id i is CPU:i, CUDA memory GPU:i; `stream` as of borrow().
  static Tensor from_dlpack(DLManagedTensor* managed, std::optional<void*> stream = {});
  DLManagedTensor* to_dlpack() const;

  explicit operator bool() const noexcept { return state_ != nullptr; }
  DType dtype() const;
  const Shape& shape() const;
  const Device& device() const;  // as given: it may be partial
  std::size_t bytes() const;
  void* memory() const;  // the address on its device

  // The elements. T must be the tensor's type, the device a CPU, and borrowed memory aligned for T; anything
  // else is invalid_argument.
  template <class T>
  std::span<T> data() {
    return {static_cast<T*>(typed_memory(kDTypeOf<T>)), shape().elements()};
  }
  template <class T>
  std::span<const T> data() const {
    return {static_cast<const T*>(typed_memory(kDTypeOf<T>)), shape().elements()};
  }

  // A copy on another device of this process, which is done when this returns.
  Tensor copied_to(const Device& device) const;

  // The same memory under another shape of as many elements.
  Tensor reshaped(Shape shape) const;

  struct State;  // internal
  const State* state() const noexcept { return state_.get(); }

 private:
  explicit Tensor(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  static Tensor from_bytes(DType dtype, std::span<const std::byte> bytes, Shape shape, const Device& device);
  void* typed_memory(DType dtype) const;

  std::shared_ptr<const State> state_;
};

// A sparse update: a dense tensor of zeros to which the rows `values[k]` are added at `indices[k]`; an index
// may occur more than once. `values` is [k, …], `indices` [k] of int32 or int64, `dense_shape` [rows, …] if
// known. Its device is that of `values`.
struct IndexedSlices {
  Tensor values;
  Tensor indices;
  std::optional<Shape> dense_shape;
};

using Value = std::variant<Tensor, IndexedSlices>;

// The device of a value's memory.
ONESUM_API const Device& device_of(const Value& value);

}  // namespace onesum
