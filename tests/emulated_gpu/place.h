// Where in the tested program a call came from: a few return addresses outside the emulated GPU, as numbers
// that addr2line takes.
#pragma once

#include <array>
#include <string>

#include "emulated_gpu/text.h"

namespace onesum::emulated {

class Place {
 public:
  static Place of_caller();
  // "libonesum.so+0x1234 < program+0x99"; nothing if nothing is known
  void write(Text& text) const;
  std::string text() const { return text_of(*this); }

 private:
  std::array<void*, 4> frames_{};
};

}  // namespace onesum::emulated
