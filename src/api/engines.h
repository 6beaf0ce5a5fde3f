// The engines of this process: the composition root.
//
// engines.cc is the only file that names concrete engines. The engines are created together, on first use,
// from the settings of the environment (base/config.h), and are never destroyed: tensors in static objects
// return their memory when the process ends, in an order that nobody controls.
#pragma once

#include <onesum/device.h>

#include "engine/device.h"

namespace onesum::api {

// The engine for CPU memory. Throws what is wrong with the settings (invalid_argument) until they can be
// used.
engine::DeviceEngine& host_engine();

// The engine that serves a device, by its type (absent: CPU). Throws unavailable for a type without engine.
engine::DeviceEngine& engine_of(const Device& device);

}  // namespace onesum::api
