// What one thread of a reduce kernel does. Compiled for the GPU by nvcc, and for tests by the host's
// compiler.
//
// The work of a launch is a list of items, the pieces' one after the other: groups of elements, and single
// elements before and behind them. Thread t of n takes items t, t + n, t + 2n, … All sources of an item are
// read before anything of it is written: a destination may be a source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/cuda/element_types.h"
#include "engine/cuda/reduce_arguments.h"

// Called with every address that must be aligned: a GPU stops there, other processors do not care. Tests
// define it.
#if !defined(ONESUM_CHECK_ALIGNMENT)
#define ONESUM_CHECK_ALIGNMENT(address, alignment)
#endif

namespace onesum::engine::cuda {

// The elements of an item.
template <std::size_t kElements, class T>
struct Elements {
  T values[kElements];

  static constexpr std::size_t kAlignment = group_alignment(kElements, sizeof(T));
  ONESUM_HOST_DEVICE void load(const std::byte* from) {
    ONESUM_CHECK_ALIGNMENT(from, kAlignment);
    memcpy(values, __builtin_assume_aligned(from, kAlignment), sizeof(values));
  }
  ONESUM_HOST_DEVICE void store(std::byte* to) const {
    ONESUM_CHECK_ALIGNMENT(to, kAlignment);
    memcpy(__builtin_assume_aligned(to, kAlignment), values, sizeof(values));
  }

  // From and to any address. Byte by byte in so many words: nvcc makes one access to an element of a memcpy.
  ONESUM_HOST_DEVICE void load_bytes(const std::byte* from) {
    std::byte bytes[sizeof(values)];
    for (std::size_t i = 0; i < sizeof(values); ++i) bytes[i] = from[i];
    memcpy(values, bytes, sizeof(values));
  }
  ONESUM_HOST_DEVICE void store_bytes(std::byte* to) const {
    std::byte bytes[sizeof(values)];
    memcpy(bytes, values, sizeof(values));
    for (std::size_t i = 0; i < sizeof(values); ++i) to[i] = bytes[i];
  }
};

// kElements at a time of one piece. kIsSum: what the arguments' `combine` is then known to be.
template <class Input, class Accumulator, class Output, bool kIsSum, std::size_t kElements>
class Reducer {
 public:
  ONESUM_HOST_DEVICE Reducer(const ReduceArguments& arguments, std::uint32_t piece, bool is_bytewise)
      : arguments_(arguments), piece_(piece), is_bytewise_(kElements == 1 && is_bytewise) {}

  ONESUM_HOST_DEVICE void run(std::uint64_t element) const {
    const Sums sums = tree(element);
    Elements<kElements, Output> results;
    for (std::size_t i = 0; i < kElements; ++i) {
      results.values[i] = element_types::finish<Output>(sums.values[i], arguments_.divisor);
    }
    ONESUM_KEEP_LOOP
    for (std::uint32_t i = 0; i < arguments_.destinations; ++i) {
      store(results, arguments_.destination(piece_, i) + element * sizeof(Output));
    }
  }

 private:
  using Sums = Elements<kElements, Accumulator>;

  // All loads of a step come before its first addition, so that they are under way together.
  ONESUM_HOST_DEVICE Sums tree(std::uint64_t element) const {
    Sums waiting[kMaxWaitingSums];
    std::uint32_t num_waiting = 0;
    std::uint32_t source = 0;
    Sums sum{};
    ONESUM_KEEP_LOOP
    for (std::uint32_t i = 0; i < arguments_.steps; ++i) {
      const ReduceStep step = arguments_.step(i);
      const Sums taken = take(step.kind, source, element);
      source += sources_of(step.kind);
      if (step.merges == 0) {
        if (i != 0) waiting[num_waiting++] = sum;
        sum = taken;
        continue;
      }
      sum = add(sum, taken);
      ONESUM_KEEP_LOOP
      for (std::uint32_t merge = 1; merge < step.merges; ++merge) sum = add(waiting[--num_waiting], sum);
    }
    return sum;
  }

  ONESUM_HOST_DEVICE static std::uint32_t sources_of(ReduceStep::Kind kind) {
    return kind == ReduceStep::kFour ? 4 : kind == ReduceStep::kTwo ? 2 : 1;
  }

  ONESUM_HOST_DEVICE Sums take(ReduceStep::Kind kind, std::uint32_t source, std::uint64_t element) const {
    if (kind == ReduceStep::kFour) {
      const auto a = load<Input>(source, element);
      const auto b = load<Input>(source + 1, element);
      const auto c = load<Input>(source + 2, element);
      const auto d = load<Input>(source + 3, element);
      return add(add(widen(a), widen(b)), add(widen(c), widen(d)));
    }
    if (kind == ReduceStep::kTwo) {
      const auto a = load<Input>(source, element);
      const auto b = load<Input>(source + 1, element);
      return add(widen(a), widen(b));
    }
    if (kind == ReduceStep::kOneWide) return load<Accumulator>(source, element);
    return widen(load<Input>(source, element));
  }

  template <class T>
  ONESUM_HOST_DEVICE Elements<kElements, T> load(std::uint32_t source, std::uint64_t element) const {
    const std::byte* from = arguments_.source(piece_, source) + element * sizeof(T);
    Elements<kElements, T> loaded;
    if (is_bytewise_) {
      loaded.load_bytes(from);
    } else {
      loaded.load(from);
    }
    return loaded;
  }

  ONESUM_HOST_DEVICE void store(const Elements<kElements, Output>& results, std::byte* to) const {
    if (is_bytewise_) {
      results.store_bytes(to);
    } else {
      results.store(to);
    }
  }

  ONESUM_HOST_DEVICE static Sums widen(const Elements<kElements, Input>& from) {
    Sums sums;
    for (std::size_t i = 0; i < kElements; ++i) {
      sums.values[i] = element_types::convert<Accumulator>(from.values[i]);
    }
    return sums;
  }

  ONESUM_HOST_DEVICE Sums add(const Sums& left, const Sums& right) const {
    Sums sums;
    if constexpr (kIsSum) {
      for (std::size_t i = 0; i < kElements; ++i) {
        sums.values[i] = element_types::add(left.values[i], right.values[i]);
      }
    } else {
      element_types::combine(arguments_.combine, left.values, right.values, sums.values);
    }
    return sums;
  }

  const ReduceArguments& arguments_;
  std::uint32_t piece_;
  bool is_bytewise_;
};

template <class Input, class Accumulator, class Output, bool kIsSum = true>
ONESUM_HOST_DEVICE void reduce_body(const ReduceArguments& arguments, std::uint64_t thread,
                                    std::uint64_t threads) {
  constexpr std::size_t kElements = elements_of_group(sizeof(Input), sizeof(Output));
  std::uint64_t item = thread;
  for (std::uint32_t index = 0; index < arguments.pieces; ++index) {
    const std::uint32_t piece = arguments.piece(index);
    const std::uint64_t count = arguments.count(piece);
    const std::uint64_t head = arguments.head(piece);
    const std::uint64_t groups = (count - head) / kElements;
    const std::uint64_t items = count - groups * (kElements - 1);
    const Reducer<Input, Accumulator, Output, kIsSum, kElements> by_group(arguments, piece, false);
    const Reducer<Input, Accumulator, Output, kIsSum, 1> one_by_one(arguments, piece,
                                                                    arguments.is_bytewise(piece));
    for (; item < items; item += threads) {
      const std::uint64_t group = item - head;  // before the head: wraps, and is none
      if (group < groups) {
        by_group.run(head + group * kElements);
      } else {
        one_by_one.run(item < head ? item : item + groups * (kElements - 1));
      }
    }
    item -= items;  // threads that had no item here begin with the next piece's
  }
}

}  // namespace onesum::engine::cuda
