// What the workers of a job share and strangers do not: the key with which they prove that they belong
// together (handshake.h). It never leaves the process and is in no message, log or error.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace onesum::cluster {

// Of a SHA-256.
using Digest = std::array<std::byte, 32>;

class Secret {
 public:
  // Fewer would be guessed.
  static constexpr std::size_t kFewestCharacters = 16;

  // Spaces and line ends around it do not count. Throws invalid_argument if it is too short.
  static Secret from_text(std::string_view text);
  // The text of a file that belongs to the user of this process and that nobody else may read or write (mode
  // & 077 is 0). Throws invalid_argument saying what is wrong with it and how to make one.
  static Secret from_file(const std::filesystem::path& path);

  Secret(const Secret&) = default;
  Secret(Secret&&) noexcept = default;
  Secret& operator=(const Secret&) = default;
  Secret& operator=(Secret&&) noexcept = default;
  ~Secret();  // leaves no copy in memory

  std::span<const std::byte> key() const noexcept { return key_; }

 private:
  explicit Secret(std::vector<std::byte> key) : key_(std::move(key)) {}

  std::vector<std::byte> key_;
};

// The commands with which a user makes one: the end of every message that asks for a secret.
std::string_view how_to_make_a_secret() noexcept;

// HMAC-SHA256.
Digest sign(std::span<const std::byte> key, std::span<const std::byte> message);

Digest digest_of(std::span<const std::byte> bytes);

// Takes the same time wherever they differ.
bool is_same(const Digest& a, const Digest& b) noexcept;

// Bytes that nobody can predict.
void fill_with_random(std::span<std::byte> bytes);

}  // namespace onesum::cluster
