// Text in a fixed buffer: the handler of faults must not allocate. What does not fit is cut off.
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string>

namespace onesum::emulated {

class Text {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int length = std::vsnprintf(data_.data() + used_, data_.size() - used_, format, values);
    va_end(values);
    if (length > 0) used_ += static_cast<std::size_t>(length);
    if (used_ >= data_.size()) used_ = data_.size() - 1;
  }

  const char* data() const { return data_.data(); }
  std::size_t size() const { return used_; }
  std::string string() const { return {data(), size()}; }

 private:
  std::array<char, 4096> data_{};
  std::size_t used_ = 0;
};

// Of anything that writes itself into one.
template <class T>
std::string text_of(const T& thing) {
  Text text;
  thing.write(text);
  return text.string();
}

}  // namespace onesum::emulated
