// What two workers say that they call, the first two bytes being the length of the first one's words: nothing
// but onesum::Error comes out of reading, describing and joining them, and what can be read is written and
// read again to the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <onesum/error.h>

#include "planner/joint_request.h"

namespace {

using namespace onesum::planner;
using Payload = std::span<const std::byte>;

Request checked(Payload payload) {
  Request request = request_from(payload);
  const std::vector<std::byte> bytes = to_bytes(request);
  if (to_bytes(request_from(bytes)) != bytes) std::abort();
  if (describe(request).empty()) std::abort();
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Payload rest = std::as_bytes(std::span(data + 2, size - 2));
  const std::size_t first = std::min<std::size_t>(rest.size(), data[0] + 256U * data[1]);
  static const std::vector<onesum::Device> kWorkers{onesum::Device("/job:worker/task:0"),
                                                    onesum::Device("/job:worker/task:1")};
  try {
    const Request one = checked(rest.first(first));
    // A worker that says the same goes along with anybody.
    const Request other = first == rest.size() ? one : checked(rest.subspan(first));
    const std::vector<Request> parts{one, other};
    Request joint = joined(parts, kWorkers);
    mark_in_place(joint, parts, 1, other);
  } catch (const onesum::Error& error) {
    if (error.code() != onesum::ErrorCode::kInvalidArgument) std::abort();
  }
  return 0;
}
