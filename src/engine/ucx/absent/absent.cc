// What takes the place of the engine in a build without UCX.
#include <onesum/error.h>

#include "engine/ucx/ucx_transport.h"

namespace onesum::engine {

bool has_ucx() noexcept { return false; }

std::string ucx_transports() { return {}; }

UcxReport report_ucx() { return {}; }

std::unique_ptr<UcxTransport> make_ucx_transport(const UcxOptions& /*options*/) {
  throw Error(
      ErrorCode::kUnimplemented,
      "ONESUM_TRANSPORT is ucx, which this build of onesum was made without; install libucx-dev (Debian; "
      "elsewhere UCX 1.13 or newer) and build it again, or leave it to TCP");
}

}  // namespace onesum::engine
