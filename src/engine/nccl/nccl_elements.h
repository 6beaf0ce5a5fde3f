// Which of our types NCCL adds.
#pragma once

#include <optional>

#include <nccl.h>

#include "base/element.h"

namespace onesum::engine::nccl {

// None for what it does not add.
inline std::optional<ncclDataType_t> sum_type(Element element) noexcept {
  switch (element) {
    case Element::kInt8:
      return ncclInt8;
    case Element::kUInt8:
      return ncclUint8;
    case Element::kInt32:
      return ncclInt32;
    case Element::kUInt32:
      return ncclUint32;
    case Element::kInt64:
      return ncclInt64;
    case Element::kUInt64:
      return ncclUint64;
    case Element::kFloat16:
      return ncclFloat16;
    case Element::kBFloat16:
      return ncclBfloat16;
    case Element::kFloat32:
      return ncclFloat32;
    case Element::kFloat64:
      return ncclFloat64;
    default:
      return std::nullopt;
  }
}

}  // namespace onesum::engine::nccl
