// Texts of plans: whatever parses prints back to the same plan, and only onesum::Error comes out of parsing
// it, printing it, proving it, costing it and drawing it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <onesum/error.h>

#include "plan/cost.h"
#include "plan/draw.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace {

using onesum::plan::Plan;

// Small enough that a proof takes no time.
bool is_small(const Plan& plan) {
  std::size_t chunks = 0;
  for (const auto& buffer : plan.buffers) chunks += buffer.window.count;
  for (const auto& pack : plan.packs) chunks += num_chunks(pack.split);
  for (const auto& operand : plan.operands) chunks += operand.chunks.count;
  return chunks < 10000 && plan.lanes.size() < 200;
}

template <class F>
void expect_only_errors(F&& f) {
  try {
    f();
  } catch (const onesum::Error&) {  // NOLINT(bugprone-empty-catch): a refusal is an answer
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Plan plan;
  try {
    plan = onesum::plan::parse_text({reinterpret_cast<const char*>(data), size});
  } catch (const onesum::Error&) {
    return 0;
  }
  if (onesum::plan::parse_text(onesum::plan::to_text(plan)) != plan) std::abort();
  if (!is_small(plan)) return 0;
  expect_only_errors([&] { onesum::plan::verify(plan); });
  const onesum::plan::Sizes sizes{std::vector<std::size_t>(plan.packs.size(), 100), {}};
  expect_only_errors([&] { onesum::plan::cost(plan, sizes); });
  expect_only_errors([&] { onesum::plan::to_svg(plan); });
  return 0;
}
