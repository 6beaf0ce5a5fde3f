#include "emulated_gpu/sums.h"

#include <cstdint>
#include <cstring>

namespace onesum::emulated {
namespace {

template <class T>
T add(T first, T second) {
  return first + second;
}
// In the unsigned type, which wraps.
template <>
std::int32_t add(std::int32_t first, std::int32_t second) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(second));
}
template <>
std::int64_t add(std::int64_t first, std::int64_t second) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(second));
}
template <>
std::int8_t add(std::int8_t first, std::int8_t second) {
  return static_cast<std::int8_t>(first + second);
}
template <>
std::uint8_t add(std::uint8_t first, std::uint8_t second) {
  return static_cast<std::uint8_t>(first + second);
}
// float32 has more than twice the bits of either: rounding twice is rounding once.
template <>
__half add(__half first, __half second) {
  return __float2half_rn(__half2float(first) + __half2float(second));
}
template <>
__nv_bfloat16 add(__nv_bfloat16 first, __nv_bfloat16 second) {
  return __float2bfloat16_rn(__bfloat162float(first) + __bfloat162float(second));
}

template <class T>
T element(const std::vector<std::byte>& bytes, std::size_t at) {
  T result;
  std::memcpy(&result, bytes.data() + at * sizeof(T), sizeof(T));
  return result;
}

template <class T>
void add_all(std::span<const std::vector<std::byte>> brought, std::size_t count, std::byte* sums) {
  const std::size_t ranks = brought.size();
  const std::size_t chunk = (count + ranks - 1) / ranks;
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t first = at / chunk;
    T sum = element<T>(brought[first], at);
    for (std::size_t step = 1; step < ranks; ++step) {
      sum = add(sum, element<T>(brought[(first + step) % ranks], at));
    }
    std::memcpy(sums + at * sizeof(T), &sum, sizeof(T));
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t dtype) {
  switch (dtype) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

std::vector<std::byte> sum_of(std::span<const std::vector<std::byte>> brought, ncclDataType_t dtype,
                              std::size_t count) {
  std::vector<std::byte> sums(count * size_of(dtype));
  std::byte* const to = sums.data();
  switch (dtype) {
    case ncclInt8:
      add_all<std::int8_t>(brought, count, to);
      break;
    case ncclUint8:
      add_all<std::uint8_t>(brought, count, to);
      break;
    case ncclInt32:
      add_all<std::int32_t>(brought, count, to);
      break;
    case ncclUint32:
      add_all<std::uint32_t>(brought, count, to);
      break;
    case ncclInt64:
      add_all<std::int64_t>(brought, count, to);
      break;
    case ncclUint64:
      add_all<std::uint64_t>(brought, count, to);
      break;
    case ncclFloat16:
      add_all<__half>(brought, count, to);
      break;
    case ncclBfloat16:
      add_all<__nv_bfloat16>(brought, count, to);
      break;
    case ncclFloat32:
      add_all<float>(brought, count, to);
      break;
    default:
      add_all<double>(brought, count, to);
      break;
  }
  return sums;
}

}  // namespace onesum::emulated
