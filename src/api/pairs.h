// The arguments of a call, seen alike whether they came as pairs, as values and results, or as one value.
//
// A view: it owns nothing and is good for the length of the call. Reading it allocates nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <onesum/cross_device_ops.h>
#include <onesum/values.h>

namespace onesum::api {

struct Pair {
  const DistributedValues* value = nullptr;
  std::span<const Device> destinations;                // unless there are results
  const DistributedValues* results = nullptr;          // the caller's memory; null: results are to be made
  std::optional<DType> declared_dtype{};               // see planner::PairInfo
  bool destination_is_text = false;                    // likewise
  std::span<const std::vector<std::size_t>> splits{};  // likewise
};

inline Pair pair_of(const DistributedValues& value, const Destination& destination) {
  return {&value, destination.devices(), nullptr, {}, destination.is_text()};
}

class Pairs {
 public:
  using Get = Pair (*)(const void* context, std::size_t index);
  Pairs(std::size_t size, const void* context, Get get) : size_(size), context_(context), get_(get) {}

  std::size_t size() const noexcept { return size_; }
  Pair operator[](std::size_t index) const { return get_(context_, index); }

 private:
  std::size_t size_;
  const void* context_;
  Get get_;
};

}  // namespace onesum::api
