"""Tensors that travel together between devices: one edge of a graph from a device to a call, and one back."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ._handles import HOST, ops


def host_of(device: str) -> str:
    """Where tensors of a device can be bundled: on itself if it is a CPU."""
    return HOST if "GPU" in device.upper() else device


def bundled(tensors: Sequence[tf.Tensor], device: str) -> tf.Tensor:
    with tf.device(None), tf.device(host_of(device)):
        return ops.onesum_bundle(tensors)


def unbundled(
    bundle: tf.Tensor, device: str, dtypes: Sequence[tf.DType], shapes: Sequence[tf.TensorShape]
) -> list[tf.Tensor]:
    """On the device. On CPUs they share the bundle's memory, and each other's."""
    with tf.device(None), tf.device(host_of(device)):
        tensors = ops.onesum_unbundle(bundle, T=dtypes)
    if not tf.executing_eagerly():
        for tensor, shape in zip(tensors, shapes, strict=True):
            tensor.set_shape(shape)
    if host_of(device) == device:
        return tensors
    with tf.device(None), tf.device(device):
        return tf.identity_n(tensors)


def common_shape(tensors: Sequence[tf.Tensor]) -> tf.TensorShape:
    """What is known of the shape that all have. Those that differ are for the call to refuse, by name."""
    shape = tensors[0].shape
    for tensor in tensors[1:]:
        if not shape.is_compatible_with(tensor.shape):
            return tf.TensorShape(None)
        shape = shape.merge_with(tensor.shape)
    return shape
