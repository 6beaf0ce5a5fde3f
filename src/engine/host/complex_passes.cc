// Products of complex numbers, in plain loops: (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each operation
// rounded as written.
#include <cstring>

#include "engine/host/passes.h"

namespace onesum::engine::host {
namespace {

// Both sources of a block are read before any of it is written: a destination may be a source.
constexpr std::size_t kBlock = 128;

template <class Part>
void multiply_block(const Part* left, const Part* right, std::size_t count, Part* product) noexcept {
  for (std::size_t i = 0; i < 2 * count; i += 2) {
    product[i] = left[i] * right[i] - left[i + 1] * right[i + 1];
    product[i + 1] = left[i] * right[i + 1] + left[i + 1] * right[i];
  }
}

// Of one or two sources.
template <class Part, std::size_t kSources>
void multiply(const KernelArgs& args) noexcept {
  constexpr std::size_t kBytes = 2 * sizeof(Part);
  Part sources[2][2 * kBlock];
  Part product[2 * kBlock];
  const std::size_t end = args.first + args.count;
  for (std::size_t begin = args.first; begin < end; begin += kBlock) {
    const std::size_t count = end - begin < kBlock ? end - begin : kBlock;
    for (std::size_t i = 0; i < kSources; ++i) {
      std::memcpy(sources[i], args.sources[i] + begin * kBytes, count * kBytes);
    }
    if constexpr (kSources == 2) multiply_block(sources[0], sources[1], count, product);
    for (std::size_t i = 0; i < args.form->destinations; ++i) {
      std::memcpy(args.destinations[i] + begin * kBytes, kSources == 2 ? product : sources[0],
                  count * kBytes);
    }
  }
}

template <class Part>
constexpr Passes kMultiply = {{nullptr, &multiply<Part, 1>, &multiply<Part, 2>}};

}  // namespace

const Passes* find_complex_product_passes(Element element) noexcept {
  if (element == Element::kComplex64) return &kMultiply<float>;
  return element == Element::kComplex128 ? &kMultiply<double> : nullptr;
}

}  // namespace onesum::engine::host
