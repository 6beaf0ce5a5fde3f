// What a thread of a kernel does, on the host: an address that would stop a GPU ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace onesum::emulated {

inline void check_alignment(const void* address, std::size_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment == 0) return;
  std::fprintf(stderr, "a kernel used %p, which is not aligned to %zu bytes\n", address, alignment);
  std::abort();
}

}  // namespace onesum::emulated

#define ONESUM_CHECK_ALIGNMENT(address, alignment) ::onesum::emulated::check_alignment(address, alignment)
#include "engine/cuda/reduce_body.h"
