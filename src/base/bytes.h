// Values as bytes for messages between processes: numbers little-endian, texts with their length before them.
//
// A reader trusts nothing: whatever is missing, too long or left over is an onesum::Error (invalid_argument),
// and no more is allocated than there are bytes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onesum/error.h>

namespace onesum {

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(value & 0xff));
      value = static_cast<T>(value >> 4 >> 4);  // in two steps: one byte has no 8 bits to lose
    }
  }

  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  void sized(std::span<const std::byte> bytes) {
    number(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }

  void text(std::string_view text) { sized(std::as_bytes(std::span(text))); }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  // The bytes must live as long as the reader.
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    const std::span<const std::byte> bytes = raw(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(bytes[i]) << (8 * i)));
    }
    return value;
  }

  std::span<const std::byte> raw(std::size_t count) {
    if (count > left_.size()) {
      throw Error(ErrorCode::kInvalidArgument, "a message of another worker ends too early");
    }
    const std::span<const std::byte> result = left_.first(count);
    left_ = left_.subspan(count);
    return result;
  }

  std::vector<std::byte> sized() {
    const std::span<const std::byte> bytes = raw(number<std::uint32_t>());
    return {bytes.begin(), bytes.end()};
  }

  std::string text() {
    const std::span<const std::byte> bytes = raw(number<std::uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::size_t left() const noexcept { return left_.size(); }

  void expect_end() const {
    if (!left_.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "a message of another worker is longer than its contents");
    }
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace onesum
