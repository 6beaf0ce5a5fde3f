// The tensors of a call whose results the caller passes.
#pragma once

#include <onesum/device.h>

#include "api/describe.h"

namespace onesum::api {

// Throws invalid_argument, naming both, if a result shares memory with another tensor of the call and is not
// exactly the replica that it replaces. Looks at the tensors as they are passed, before anything is planned.
void refuse_overlaps(const CallTraits& traits, const Pairs& pairs, const Device& defaults);

}  // namespace onesum::api
