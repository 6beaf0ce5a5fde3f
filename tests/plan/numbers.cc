#include "plan/numbers.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include <onesum/dtype.h>
#include <onesum/error.h>

namespace onesum::plan::numbers {

namespace {

__extension__ typedef __int128 Int128;

template <class T>
void append(Bytes& bytes, T value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

template <class T>
T get(const Bytes& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

template <class T>
T canonical_sum(const std::vector<T>& values, std::size_t first, std::size_t n) {
  if (n == 1) return values[first];
  const std::size_t left = std::bit_floor(n - 1);
  return canonical_sum(values, first, left) + canonical_sum(values, first + left, n - left);
}

constexpr double kNasty[] = {1e8,  1.0,  -1e8,       1e-42, -1e-42, 0.1,   -0.1, 3.0,        -0.0,
                             1e30, 1e-7, 16777217.0, -1e30, 0.3333, 1e-38, 7.0,  1.00000012, -5e-45};
constexpr double kNastyHalf[] = {2048.0, 1.0, -2048.0, 6e-8, -6e-8, 0.1, 60000.0, 3.0, -0.0, 0.3333, -1.001};

template <class T>
T make_value(std::mt19937_64& random, bool nasty) {
  const auto small = static_cast<int>(random() % 17) - 8;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return static_cast<T>(nasty ? kNasty[random() % std::size(kNasty)] : small);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return Float16::from_float(static_cast<float>(nasty ? kNastyHalf[random() % std::size(kNastyHalf)]
                                                        : static_cast<double>(small)));
  } else {
    return static_cast<T>(random() % 4 == 0 ? random() | (~std::uint64_t{0} << 3) : random());
  }
}

// T: the type of the replicas; A: in which they are added; R: the result.
template <class T, class A, class R>
void make_sum(const Pack& pack, std::size_t length, bool nasty, std::mt19937_64& random,
              std::vector<Bytes>& inputs, Bytes& result) {
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<A> values;
    for (Bytes& input : inputs) {
      const T value = make_value<T>(random, nasty);
      append(input, value);
      if constexpr (std::is_same_v<T, Float16>) {
        values.push_back(value.to_float());
      } else {
        values.push_back(static_cast<A>(value));
      }
    }
    const A sum = canonical_sum(values, 0, values.size());
    if constexpr (std::is_same_v<R, Float16>) {
      append(result, R::from_float(sum / static_cast<float>(pack.divisor)));
    } else {
      append(result, static_cast<R>(static_cast<R>(sum) / static_cast<R>(pack.divisor)));
    }
  }
}

Element element_of_replicas(const Plan& plan, std::size_t pack) {
  for (const Buffer& buffer : plan.buffers) {
    const bool replica = buffer.role == Role::kInput || buffer.role == Role::kInOut;
    if (replica && static_cast<std::size_t>(buffer.pack) == pack) return buffer.element;
  }
  return plan.packs[pack].accumulator;
}

Bytes part_of(const Bytes& whole, const Extent& extent, Element element) {
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(extent.offset * size_of(element));
  return {begin, begin + static_cast<std::ptrdiff_t>(extent.length * size_of(element))};
}

// Random bytes, of which each replica has the window of its buffer.
void make_shares(const Plan& plan, std::size_t number, std::size_t length, std::mt19937_64& random,
                 std::vector<Bytes>& inputs, Bytes& result) {
  const Element element = plan.packs[number].output;
  for (std::size_t i = 0; i < length * size_of(element); ++i)
    result.push_back(static_cast<std::byte>(random()));
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.role != Role::kInput || static_cast<std::size_t>(buffer.pack) != number) continue;
    const Extent extent = extent_of(plan.packs[number].split, length, {}, buffer.window);
    inputs[static_cast<std::size_t>(buffer.index)] = part_of(result, extent, element);
  }
}

void make_pack(const Plan& plan, std::size_t number, bool canonical, std::mt19937_64& random,
               Problem& problem) {
  const Pack& pack = plan.packs[number];
  const Element element = element_of_replicas(plan, number);
  const std::size_t length = std::size_t{num_chunks(pack.split)} * 3 + 2;
  problem.sizes.pack_lengths.push_back(length);
  problem.sizes.counts.emplace_back();
  std::vector<Bytes>& inputs = problem.inputs.emplace_back(pack.replicas.size());
  Bytes result;
  if (pack.contract == Contract::kConcatenate && !is_by_counts(pack.split)) {
    make_shares(plan, number, length, random, inputs, result);
  } else if (pack.contract == Contract::kConcatenate || pack.replicas.size() == 1) {
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      const std::size_t count = pack.replicas.size() == 1 ? length : 1 + r % 3;
      problem.sizes.counts.back().push_back(count);
      for (std::size_t i = 0; i < count * size_of(element); ++i) {
        inputs[r].push_back(static_cast<std::byte>(element == Element::kBool ? random() % 2 : random()));
      }
      result.insert(result.end(), inputs[r].begin(), inputs[r].end());
    }
  } else if (element == Element::kFloat32) {
    make_sum<float, float, float>(pack, length, canonical, random, inputs, result);
  } else if (element == Element::kFloat64) {
    make_sum<double, double, double>(pack, length, canonical, random, inputs, result);
  } else if (element == Element::kFloat16) {
    make_sum<Float16, float, Float16>(pack, length, canonical, random, inputs, result);
  } else if (element == Element::kInt64 && pack.output == Element::kFloat64) {
    make_sum<std::int64_t, Int128, double>(pack, length, true, random, inputs, result);
  } else if (element == Element::kInt32 && pack.output == Element::kFloat64) {
    make_sum<std::int32_t, std::int64_t, double>(pack, length, true, random, inputs, result);
  } else {
    make_sum<std::uint32_t, std::uint32_t, std::uint32_t>(pack, length, true, random, inputs, result);
  }
  std::vector<Bytes>& expected = problem.expected.emplace_back(pack.destinations.size(), result);
  if (pack.contract != Contract::kScatter) return;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.role != Role::kOutput || static_cast<std::size_t>(buffer.pack) != number) continue;
    const Extent extent = extent_of(pack.split, length, {}, buffer.window);
    expected[static_cast<std::size_t>(buffer.index)] = part_of(result, extent, pack.output);
  }
}

// Equal bits, or both not a number.
bool same(const Bytes& a, const Bytes& b, Element element) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size() / size_of(element); ++i) {
    if (std::memcmp(a.data() + i * size_of(element), b.data() + i * size_of(element), size_of(element)) == 0)
      continue;
    if (element == Element::kFloat32 && std::isnan(get<float>(a, i)) && std::isnan(get<float>(b, i)))
      continue;
    if (element == Element::kFloat64 && std::isnan(get<double>(a, i)) && std::isnan(get<double>(b, i)))
      continue;
    if (element == Element::kFloat16 && std::isnan(get<Float16>(a, i).to_float()) &&
        std::isnan(get<Float16>(b, i).to_float())) {
      continue;
    }
    return false;
  }
  return true;
}

// The user's function of the tests: a sum in float16 or in float32, from left to right.
void add_up(const SimulatedCall& call) {
  const bool half = call.accumulator == Element::kFloat16;
  const std::size_t size = half ? 2 : 4;
  for (std::size_t i = 0; i < call.result.size() / size; ++i) {
    float sum = 0;
    for (const std::span<const std::byte> source : call.sources) {
      const Bytes bytes(source.begin(), source.end());
      sum += half ? get<Float16>(bytes, i).to_float() : get<float>(bytes, i);
    }
    Bytes result;
    if (half) {
      append(result, Float16::from_float(sum));
    } else {
      append(result, sum);
    }
    std::memcpy(call.result.data() + i * size, result.data(), size);
  }
}

}  // namespace

Problem make(const Plan& plan, const Proof& proof, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem;
  for (std::size_t i = 0; i < plan.packs.size(); ++i)
    make_pack(plan, i, proof.packs[i].canonical, random, problem);
  return problem;
}

std::string check(const Plan& plan, const Problem& problem, std::uint64_t seed, int runs) {
  for (int run = 0; run < runs; ++run) {
    SimulateOptions options;
    options.seed = run == 0 ? 0 : seed + static_cast<std::uint64_t>(run);
    options.slots = 1 + static_cast<std::size_t>(run) % 3;
    options.call = add_up;
    const std::string which =
        " with seed " + std::to_string(options.seed) + " and " + std::to_string(options.slots) + " slots";
    BytesOfPacks results;
    try {
      results = simulate(plan, problem.sizes, problem.inputs, options);
    } catch (const Error& error) {
      return error.what() + which;
    }
    for (std::size_t p = 0; p < results.size(); ++p) {
      for (std::size_t d = 0; d < results[p].size(); ++d) {
        if (same(results[p][d], problem.expected[p][d], plan.packs[p].output)) continue;
        return "pack " + std::to_string(p) + " destination " + std::to_string(d) + " is wrong" + which;
      }
    }
  }
  return "";
}

}  // namespace onesum::plan::numbers
