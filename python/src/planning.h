// CrossDeviceOps.plan and explain.
#pragma once

#include <nanobind/nanobind.h>

#include <onesum/cross_device_ops.h>

namespace onesum::python {

void bind_planning(nanobind::class_<CrossDeviceOps>& type);

}  // namespace onesum::python
