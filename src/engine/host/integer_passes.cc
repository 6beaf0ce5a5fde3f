// Passes that change an integer's type: widening for sums that must not wrap, and the end of a MEAN, plus
// sums of 128 bits. Plain loops; MEAN of integers is rare, and the compiler makes SIMD code of most of them.
#include <cstring>
#include <type_traits>

#include "engine/host/passes.h"

namespace onesum::engine::host {
namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <class T>
T load(const std::byte* from, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, std::size_t index, T value) noexcept {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

// A block is converted once and then copied to all destinations. Its last source bytes are read before the
// first byte is written: a destination may be the source.
inline constexpr std::size_t kBlock = 256;

template <class To>
void store_everywhere(const KernelArgs& args, std::size_t begin, std::size_t count,
                      const To* block) noexcept {
  for (std::size_t i = 0; i < args.form->destinations; ++i) {
    std::memcpy(args.destinations[i] + begin * sizeof(To), block, count * sizeof(To));
  }
}

template <class From, class To>
void convert(const KernelArgs& args) noexcept {
  const auto divisor = static_cast<To>(args.form->divisor);
  const bool divides = std::is_floating_point_v<To> && args.form->divisor != 1;
  To block[kBlock];
  const std::size_t end = args.first + args.count;
  for (std::size_t begin = args.first; begin < end; begin += kBlock) {
    const std::size_t count = end - begin < kBlock ? end - begin : kBlock;
    const std::byte* from = args.sources[0] + begin * sizeof(From);
    for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<To>(load<From>(from, i));
    if (divides) {
      for (std::size_t i = 0; i < count; ++i) block[i] /= divisor;
    }
    store_everywhere(args, begin, count, block);
  }
}

// Sums of 128 bits, one or two sources.
template <std::size_t kSources>
void add_128(const KernelArgs& args) noexcept {
  for (std::size_t i = args.first; i < args.first + args.count; ++i) {
    auto sum = load<UInt128>(args.sources[0], i);
    if constexpr (kSources == 2) sum += load<UInt128>(args.sources[1], i);
    for (std::size_t k = 0; k < args.form->destinations; ++k) store(args.destinations[k], i, sum);
  }
}

template <class From, class To>
constexpr Passes kConvert = {{nullptr, &convert<From, To>}};
constexpr Passes kAdd128 = {{nullptr, &add_128<1>, &add_128<2>}};

// To int64 or uint64.
template <class To>
const Passes* find_widening(Element input) noexcept {
  switch (input) {
    case Element::kUInt8:
      return &kConvert<std::uint8_t, To>;
    case Element::kUInt16:
      return &kConvert<std::uint16_t, To>;
    case Element::kUInt32:
      return &kConvert<std::uint32_t, To>;
    case Element::kInt8:
      return std::is_signed_v<To> ? &kConvert<std::int8_t, To> : nullptr;
    case Element::kInt16:
      return std::is_signed_v<To> ? &kConvert<std::int16_t, To> : nullptr;
    case Element::kInt32:
      return std::is_signed_v<To> ? &kConvert<std::int32_t, To> : nullptr;
    default:
      return nullptr;
  }
}

// From sums of 64 and 128 bits to the result of a MEAN.
template <class To>
const Passes* find_to_float(Element input) noexcept {
  switch (input) {
    case Element::kInt64:
      return &kConvert<std::int64_t, To>;
    case Element::kUInt64:
      return &kConvert<std::uint64_t, To>;
    case Element::kInt128:
      return &kConvert<Int128, To>;
    case Element::kUInt128:
      return &kConvert<UInt128, To>;
    default:
      return nullptr;
  }
}

const Passes* find_to_128(Element input, Element output) noexcept {
  if (input == output) return &kAdd128;
  if (input == Element::kUInt64) {
    return output == Element::kInt128 ? &kConvert<std::uint64_t, Int128> : &kConvert<std::uint64_t, UInt128>;
  }
  return input == Element::kInt64 && output == Element::kInt128 ? &kConvert<std::int64_t, Int128> : nullptr;
}

}  // namespace

const Passes* find_integer_passes(Element input, Element output) noexcept {
  switch (output) {
    case Element::kInt64:
      return find_widening<std::int64_t>(input);
    case Element::kUInt64:
      return find_widening<std::uint64_t>(input);
    case Element::kInt128:
    case Element::kUInt128:
      return find_to_128(input, output);
    case Element::kFloat32:
      return find_to_float<float>(input);
    case Element::kFloat64:
      return find_to_float<double>(input);
    default:
      return nullptr;
  }
}

bool begins_with_canonical_tree(std::span<const std::uint8_t> merges, std::size_t sources) noexcept {
  if (merges.size() < sources) return false;
  for (std::size_t i = 0; i + 1 < sources; ++i) {
    // Like carries of a binary counter: source i completes as many subtrees as i ends in ones.
    if (merges[i] != __builtin_ctzll(i + 1)) return false;
  }
  return merges[sources - 1] >= last_merges(sources);
}

}  // namespace onesum::engine::host
