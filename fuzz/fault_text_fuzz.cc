// Faults in text, as in ONESUM_FAULT. Nothing but onesum::Error comes out, and what can be read prints back
// to the same faults.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <onesum/error.h>

#include "engine/faulty/faults.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const onesum::engine::Fault& fault : onesum::engine::parse_faults(text)) {
      const auto again = onesum::engine::parse_faults(to_string(fault));
      if (again.size() != 1 || again.front() != fault) std::abort();
    }
  } catch (const onesum::Error& error) {
    if (error.code() != onesum::ErrorCode::kInvalidArgument) std::abort();
    if (std::string_view(error.what()).size() > 2000) std::abort();
  }
  return 0;
}
