// What other workers say while they call: where they are, what they call, and why it has ended. The first
// byte says which of these the rest is. Nothing but onesum::Error comes out, and what can be read prints back
// to the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <onesum/error.h>

#include "cluster/verdict.h"

namespace {

using Payload = std::span<const std::byte>;

template <class Read>
void check(Payload payload, const Read& read) {
  try {
    const auto value = read(payload);
    if (!std::ranges::equal(to_bytes(value), payload)) std::abort();
  } catch (const onesum::Error& error) {
    if (error.code() != onesum::ErrorCode::kInvalidArgument) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Payload rest = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] == 'w') check(rest, onesum::cluster::whereabouts_from);
  if (data[0] == 's') check(rest, onesum::cluster::statement_from);
  if (data[0] == 'v') check(rest, onesum::cluster::verdict_from);
  return 0;
}
