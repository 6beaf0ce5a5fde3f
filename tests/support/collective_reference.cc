#include "support/collective_reference.h"

#include <cstring>
#include <random>

#include "support/canonical_sum.h"
#include "support/with_type.h"

namespace onesum::testing {
namespace {

template <class T>
T number_of(std::mt19937_64& random) {
  std::uniform_real_distribution<double> between(-100, 100);
  if constexpr (is_half<T>) {
    return T::from_float(static_cast<float>(between(random)));
  } else if constexpr (is_complex<T>) {
    using Part = typename T::value_type;
    const auto real = static_cast<Part>(between(random));
    return T(real, static_cast<Part>(between(random)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(between(random));
  } else {
    return static_cast<T>(random());
  }
}

std::vector<std::size_t> split_of(const CollectiveCase& its, std::size_t replica) {
  if (!its.splits.empty()) return its.splits[replica];
  return std::vector<std::size_t>(its.results.size(), its.replicas[replica] / its.results.size());
}

Bytes part_of(const CollectiveCase& its, const Bytes& bytes, std::size_t first, std::size_t count) {
  const std::size_t size = size_of(its.dtype);
  return {bytes.begin() + static_cast<std::ptrdiff_t>(first * size),
          bytes.begin() + static_cast<std::ptrdiff_t>((first + count) * size)};
}

Bytes part_of_result(const CollectiveCase& its, const Bytes& whole, std::size_t result) {
  std::size_t first = 0;
  for (std::size_t d = 0; d < result; ++d) first += its.results[d];
  return part_of(its, whole, first, its.results[result]);
}

Bytes sum_of(const CollectiveCase& its, std::uint64_t seed) {
  std::vector<Bytes> replicas;
  for (std::size_t r = 0; r < its.replicas.size(); ++r) replicas.push_back(replica_bytes(its, r, seed));
  return canonical_result(its.op, its.dtype, replicas);
}

Bytes exchanged(const CollectiveCase& its, std::size_t result, std::uint64_t seed) {
  Bytes all;
  for (std::size_t r = 0; r < its.replicas.size(); ++r) {
    const std::vector<std::size_t> split = split_of(its, r);
    std::size_t first = 0;
    for (std::size_t d = 0; d < result; ++d) first += split[d];
    const Bytes part = part_of(its, replica_bytes(its, r, seed), first, split[result]);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Bytes gathered(const CollectiveCase& its, std::uint64_t seed) {
  Bytes all;
  for (std::size_t r = 0; r < its.replicas.size(); ++r) {
    const Bytes part = replica_bytes(its, r, seed);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

CollectiveCase collective_case(CollectiveKind kind, DType dtype, std::size_t parties, std::size_t elements,
                               bool uneven) {
  CollectiveCase its;
  its.kind = kind;
  its.dtype = dtype;
  std::vector<std::size_t> parts;
  std::size_t whole = 0;
  for (std::size_t i = 0; i < parties; ++i) {
    parts.push_back(elements + (uneven ? i : 0));
    whole += parts.back();
  }
  const std::vector<std::size_t> wholes(parties, whole);
  const bool collects = kind == CollectiveKind::kAllGather;
  const bool shares_out = kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kScatter;
  its.replicas = collects ? parts : wholes;
  its.results = shares_out ? parts : wholes;
  if (kind != CollectiveKind::kAllToAll) return its;
  if (uneven) its.splits.assign(parties, parts);
  for (std::size_t d = 0; d < parties; ++d) its.results[d] = parts[d] * parties;
  return its;
}

Bytes replica_bytes(const CollectiveCase& its, std::size_t replica, std::uint64_t seed) {
  Bytes bytes(its.replicas[replica] * size_of(its.dtype));
  std::mt19937_64 random(seed * 1000 + replica);
  with_type(its.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < its.replicas[replica]; ++i) {
      const T number = number_of<T>(random);
      std::memcpy(bytes.data() + i * sizeof(T), &number, sizeof(T));
    }
  });
  return bytes;
}

Bytes expected_result(const CollectiveCase& its, std::size_t result, std::uint64_t seed) {
  const auto root = static_cast<std::size_t>(its.root);
  switch (its.kind) {
    case CollectiveKind::kReduce:
      return sum_of(its, seed);
    case CollectiveKind::kBroadcast:
      return replica_bytes(its, root, seed);
    case CollectiveKind::kReduceScatter:
      return part_of_result(its, sum_of(its, seed), result);
    case CollectiveKind::kScatter:
      return part_of_result(its, replica_bytes(its, root, seed), result);
    case CollectiveKind::kAllGather:
      return gathered(its, seed);
    default:
      return exchanged(its, result, seed);
  }
}

}  // namespace onesum::testing
