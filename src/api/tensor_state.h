// What a Tensor refers to. Made once, never changed, shared by all handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <onesum/tensor.h>

namespace onesum {

struct Tensor::State {
  // Computes bytes and signature; the memory is still null and nobody's. Throws invalid_argument naming
  // `what` (the function the caller called) for an unknown type, a device without any field, or more bytes
  // than addresses.
  State(const char* what, DType dtype, Shape shape, const Device& device);
  ~State() {
    if (release != nullptr) release(*this);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  DType dtype;
  Shape shape;
  Device device;
  std::size_t bytes = 0;
  void* memory = nullptr;
  // Of the caller's, on whose work calls with this tensor wait, and which waits for them; none: calls wait
  // for themselves.
  std::optional<void*> stream{};
  // Of dtype, shape and device (not of the memory), computed once: what the key of a plan cache needs of a
  // tensor.
  std::uint64_t signature = 0;

  // Who gives the memory back, with what; none for borrowed memory. A function and not a std::shared_ptr, so
  // that an owned tensor costs one allocation beside its memory.
  void (*release)(const State&) noexcept = nullptr;
  void* owner = nullptr;
  // Whose memory it is: another state (of reshaped tensors), or what the caller has lent it with.
  std::shared_ptr<const void> keeper;
};

namespace api {

// The caller's stream of borrowed memory. Throws unavailable if the memory's device is not there, and
// invalid_argument, naming `what`, if it has no streams.
void set_stream(Tensor::State& state, std::optional<void*> stream, const char* what);

}  // namespace api
}  // namespace onesum
