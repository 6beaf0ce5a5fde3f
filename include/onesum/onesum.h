// Everything.
#pragma once

#include <onesum/all_reduce.h>
#include <onesum/all_reduce_spec.h>
#include <onesum/cluster.h>
#include <onesum/cross_device_ops.h>
#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/error.h>
#include <onesum/options.h>
#include <onesum/plan.h>
#include <onesum/shape.h>
#include <onesum/strategy.h>
#include <onesum/tensor.h>
#include <onesum/values.h>
#include <onesum/variable.h>
#include <onesum/version.h>
