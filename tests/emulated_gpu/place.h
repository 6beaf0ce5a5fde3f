// Where in the tested program a call came from: a few return addresses outside the emulated GPU, as numbers
// that addr2line takes.
#pragma once

#include <array>
#include <string>

namespace onesum::emulated {

class Place {
 public:
  static Place of_caller();
  std::string text() const;  // "libonesum.so+0x1234 < program+0x99", or "" if nothing is known

 private:
  std::array<void*, 4> frames_{};
};

}  // namespace onesum::emulated
