#include "collective/sums.h"

#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <type_traits>

#include "support/with_type.h"

namespace onesum::collective {
namespace {

template <class T>
double nasty(std::mt19937_64& random) {
  const double limit = std::is_same_v<T, Float16> ? 2048.0 : 1e8;
  const int spread = std::is_same_v<T, Float16> ? 10 : 60;
  switch (random() % 8) {
    case 0:
      return limit;
    case 1:
      return -limit;
    case 2:
      return 1.0;
    case 3:
      return std::is_same_v<T, Float16> ? 6e-8 : 1e-42;
    case 4:
      return -0.0;
    case 5:
      return 1.0 + static_cast<double>(random() % 1024) / 1024;
    default: {
      const double sign = random() % 2 == 0 ? 1.0 : -1.0;
      const auto exponent = static_cast<int>(random() % static_cast<unsigned>(spread)) - spread / 2;
      return sign * std::ldexp(1.0 + static_cast<double>(random() % 4096) / 4096, exponent);
    }
  }
}

template <class T>
T make(std::mt19937_64& random) {
  if constexpr (testing::is_half<T>) {
    return T::from_float(static_cast<float>(nasty<T>(random)));
  } else if constexpr (testing::is_complex<T>) {
    using Part = typename T::value_type;
    const auto real = static_cast<Part>(nasty<Part>(random));
    return T(real, static_cast<Part>(nasty<Part>(random)));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    return static_cast<T>(nasty<T>(random));
  }
}

}  // namespace

const std::vector<DType>& types_with_sums() {
  static const std::vector<DType> types = {DType::kFloat16, DType::kBFloat16,  DType::kFloat32,
                                           DType::kFloat64, DType::kComplex64, DType::kComplex128,
                                           DType::kInt8,    DType::kInt64,     DType::kUInt64};
  return types;
}

bool is_exact(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt64 || dtype == DType::kUInt64;
}

std::vector<plan::Bytes> nasty_replicas(DType dtype, std::size_t replicas, std::size_t elements,
                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<plan::Bytes> all(replicas, plan::Bytes(elements * size_of(dtype)));
  testing::with_type(dtype, [&](auto type) {
    for (plan::Bytes& replica : all) {
      for (std::size_t i = 0; i < elements; ++i) {
        const auto value = make<decltype(type)>(random);
        std::memcpy(replica.data() + i * sizeof value, &value, sizeof value);
      }
    }
  });
  return all;
}

plan::Bytes bytes_of_floats(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> floats_of_bytes(const plan::Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace onesum::collective
