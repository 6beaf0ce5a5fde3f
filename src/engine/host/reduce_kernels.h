// From a form to a kernel.
#pragma once

#include "engine/device.h"

namespace onesum::engine::host {

// Never null; throws invalid_argument for a form that has no meaning, naming what is wrong with it.
Kernel find_reduce_kernel(const ReduceForm& form);

}  // namespace onesum::engine::host
