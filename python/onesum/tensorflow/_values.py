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


def check_reduce_op(reduce_op) -> None:
    if reduce_op not in (tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN):
        raise ValueError(f"reduce_op is {reduce_op!r}; expected tf.distribute.ReduceOp.SUM or MEAN")


def options_of(options) -> dict:
    """TensorFlow's CommunicationOptions as attributes of an op."""
    return {
        "bytes_per_pack": options.bytes_per_pack,
        "timeout_ms": math.ceil((options.timeout_seconds or 0) * 1000),
        "implementation": options.implementation.value,
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


def copied(tensor: tf.Tensor, devices: tuple[str, ...]) -> list[tf.Tensor]:
    """On each of the devices; on CPUs they share their memory."""
    copies = []
    for device in devices:
        with tf.device(None), tf.device(device):
            copies.append(tf.identity(tensor))
    return copies


def mirrored(copies):
    """As TensorFlow's own classes return it: a tensor if there is one device."""
    return distribute_utils.regroup(tuple(copies), wrap_class=value_lib.Mirrored)
