"""What TensorFlow passes to cross-device classes, taken apart and put together again."""

from __future__ import annotations

import math

import tensorflow as tf
from tensorflow.python.distribute import cross_device_ops, distribute_utils
from tensorflow.python.distribute import values as value_lib

# What a MEAN of integers gives.
_MEANS = {
    **dict.fromkeys([tf.int8, tf.uint8, tf.int16, tf.uint16], tf.float32),
    **dict.fromkeys([tf.int32, tf.uint32, tf.int64, tf.uint64], tf.float64),
}


def result_dtype(reduce_op: tf.distribute.ReduceOp, dtype: tf.DType) -> tf.DType:
    return _MEANS.get(dtype, dtype) if reduce_op == tf.distribute.ReduceOp.MEAN else dtype


def name_of(reduce_op) -> str:
    """"SUM" or "MEAN"; anything else is refused."""
    if reduce_op in (tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN):
        return reduce_op.name
    raise ValueError(f"reduce_op is {reduce_op!r}; expected tf.distribute.ReduceOp.SUM or MEAN")


def options_of(options) -> dict:
    """TensorFlow's CommunicationOptions as attributes of an op."""
    return {
        "bytes_per_pack": options.bytes_per_pack,
        "timeout_ms": math.ceil((options.timeout_seconds or 0) * 1000),
        "implementation": options.implementation.value,
        "is_waited_for": tf.executing_eagerly(),
    }


def replicas_of(value) -> list[tf.Tensor | tf.IndexedSlices]:
    """The components of a value, all dense or all sparse: where they are mixed, sparse ones are made dense."""
    components = value.values
    if not components:
        raise ValueError(f"the value {value!r} has no replicas; expected one or more")
    if all(isinstance(each, tf.IndexedSlices) for each in components):
        return list(components)
    return [each if isinstance(each, tf.Tensor) else tf.convert_to_tensor(each) for each in components]


def devices_of(value_or_destination) -> tuple[str, ...]:
    return tuple(cross_device_ops.get_devices_from(value_or_destination))


def delivered(results: list[list[tf.Tensor]], devices: tuple[str, ...]) -> list[tuple[tf.Tensor, ...]]:
    """results[d]: all tensors for device d, or results[0] for all of them. Gives for each tensor its copies on the
    devices, which on CPUs share their memory."""
    on_devices = []
    for index, device in enumerate(devices):
        with tf.device(None), tf.device(device):
            on_devices.append(tf.identity_n(results[index if len(results) > 1 else 0]))
    return list(zip(*on_devices, strict=True))


def mirrored(copies):
    """As TensorFlow's own classes return it: a tensor if there is one device."""
    return distribute_utils.regroup(tuple(copies), wrap_class=value_lib.Mirrored)
