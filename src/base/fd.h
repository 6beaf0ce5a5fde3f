// A file descriptor that is closed with its owner.
#pragma once

#include <utility>

#include <unistd.h>

namespace onesum {

class Fd {
 public:
  Fd() = default;
  // Takes ownership; a negative number is none.
  explicit Fd(int number) noexcept : number_(number) {}
  Fd(Fd&& other) noexcept : number_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }
  explicit operator bool() const noexcept { return is_open(); }

  // The caller owns it from now on.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

  void reset(int number = -1) noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_ = -1;
};

}  // namespace onesum
