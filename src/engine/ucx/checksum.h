// CRC32C of messages.
#pragma once

#include <cstdint>
#include <span>

#include <ucp/api/ucp.h>

#include "engine/ucx/wire.h"

namespace onesum::engine::ucx {

// Of a header and the payload of `header.bytes` behind it, whatever the header's own checksum is.
std::uint32_t checksum_of(const Header& header, std::span<const ucp_dt_iov_t> payload) noexcept;

}  // namespace onesum::engine::ucx
