// Fingerprints: 128 bits that stand for a value.
//
// Made for keys of caches and for comparing values between processes: equal sequences of words give equal
// fingerprints on every machine, different ones differ but for an accident of 2^-128. Not made against an
// attacker. About a nanosecond per word, so it may run in every call.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace onesum {

struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// For std::unordered_map: the bits are mixed already.
struct FingerprintHash {
  std::size_t operator()(const Fingerprint& fingerprint) const noexcept { return fingerprint.low; }
};

class Hasher {
 public:
  // Two chains with multipliers of their own: where one forgets its past (a product of zero), the other does
  // not.
  constexpr void add(std::uint64_t word) noexcept {
    low_ = folded(low_ ^ word, kMultiplierLow);
    high_ = folded(high_ + word, kMultiplierHigh);
    ++words_;
  }

  // Length first, so that ("ab", "c") and ("a", "bc") differ.
  void add(std::string_view text) noexcept {
    add(static_cast<std::uint64_t>(text.size()));
    while (text.size() >= sizeof(std::uint64_t)) {
      add(little_endian(text.data(), sizeof(std::uint64_t)));
      text.remove_prefix(sizeof(std::uint64_t));
    }
    if (!text.empty()) add(little_endian(text.data(), text.size()));
  }

  // Of everything added so far; more may be added afterwards.
  constexpr Fingerprint finish() const noexcept {
    return {folded(low_ ^ words_, kMultiplierHigh) ^ std::rotl(high_, 32),
            folded(high_ ^ ~words_, kMultiplierLow) ^ std::rotl(low_, 17)};
  }

 private:
  // Odd, with about as many ones as zeros (of wyhash).
  static constexpr std::uint64_t kMultiplierLow = 0xa0761d6478bd642fULL;
  static constexpr std::uint64_t kMultiplierHigh = 0xe7037ed1a0b428dbULL;

  // Both halves of the product, so that high bits reach low ones too.
  static constexpr std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  static std::uint64_t little_endian(const char* bytes, std::size_t count) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
  }

  std::uint64_t low_ = 0x8ebc6af09c88c6e3ULL;
  std::uint64_t high_ = 0x589965cc75374cc3ULL;
  std::uint64_t words_ = 0;
};

}  // namespace onesum
