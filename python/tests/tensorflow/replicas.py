"""Values for tests: distributed ones, made of lists."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.distribute import values as value_lib

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def devices(count: int) -> list[str]:
    return [f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in range(count)]


def per_replica(components, on=None):
    """One component on each device; a (values, indices, dense_shape) is sparse."""
    return value_lib.PerReplica(_placed(components, on))


def mirrored(component, on):
    return value_lib.Mirrored(_placed([component] * len(on), on))


def _placed(components, on):
    placed = []
    for component, device in zip(components, on or devices(len(components)), strict=True):
        with tf.device(device):
            if isinstance(component, tuple):
                rows, indices, shape = component
                placed.append(
                    tf.IndexedSlices(
                        tf.identity(tf.constant(rows, tf.float32)),
                        tf.identity(tf.constant(indices)),
                        None if shape is None else tf.identity(tf.constant(shape)),
                    )
                )
            else:
                placed.append(tf.identity(component))
    return tuple(placed)


def components_of(result) -> list:
    """Of what a reduction returned: a distributed value, or what one device has."""
    if isinstance(result, list):
        return result
    return list(result.values) if isinstance(result, tf.distribute.DistributedValues) else [result]


def arrays(result) -> list:
    return [component.numpy().tolist() for component in components_of(result)]


def devices_of(result) -> list[str]:
    return [component.device for component in components_of(result)]


def parts(slices: tf.IndexedSlices) -> tuple[list, list]:
    return slices.values.numpy().tolist(), slices.indices.numpy().tolist()
