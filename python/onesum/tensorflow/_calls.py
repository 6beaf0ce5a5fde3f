"""The ops of one object: what is called of the library, with TensorFlow's tensors."""

from __future__ import annotations

import tensorflow as tf

from . import _values
from ._handles import HOST, Handles, ops

Replicas = list[tf.Tensor]


class Calls:
    def __init__(self, handles: Handles):
        self._handles = handles

    def reduce(self, reduce_op, values: list[Replicas], devices, order, options) -> list[tuple[tf.Tensor, ...]]:
        """values[t][r]: replica r of tensor t. Gives for each tensor its sum on each of the devices. `order`: whose
        replica's result each device gets, where each replica has its own; else all get the same."""
        count = len(values[0])
        flat = [value[replica] for replica in range(count) for value in values]
        types = [_values.result_dtype(reduce_op, value[0].dtype) for value in values]
        with tf.device(None), tf.device(HOST):
            cluster, object_ = self._handles()
            results = ops.onesum_reduce(
                cluster,
                object_,
                flat,
                Tresults=types * (count if order else 1),
                replicas=count,
                reduce_op=reduce_op.name,
                **_values.options_of(options),
            )
        by_replica = [results[start : start + len(values)] for start in range(0, len(results), len(values))]
        return _values.delivered([by_replica[r] for r in order] if order else by_replica, devices)

    def reduce_sparse(self, reduce_op, values, devices, _order, options) -> list[tuple[tf.IndexedSlices, ...]]:
        """The same of indexed slices."""
        count = len(values[0])
        flat = [value[replica] for replica in range(count) for value in values]
        shapes = [each.dense_shape for each in flat]
        index_types = [
            tf.int64 if any(each.indices.dtype == tf.int64 for each in value) else tf.int32 for value in values
        ]
        with tf.device(None), tf.device(HOST):
            cluster, object_ = self._handles()
            rows, indices = ops.onesum_reduce_sparse(
                cluster,
                object_,
                [each.values for each in flat],
                [each.indices for each in flat],
                [] if any(shape is None for shape in shapes) else shapes,
                Tresults=[_values.result_dtype(reduce_op, value[0].dtype) for value in values],
                Tresult_indices=index_types,
                replicas=count,
                reduce_op=reduce_op.name,
                **_values.options_of(options),
            )
        copies = _values.delivered([[*rows, *indices]], devices)
        return [
            tuple(
                tf.IndexedSlices(its_rows, its_indices, value[0].dense_shape)
                for its_rows, its_indices in zip(copies[t], copies[len(values) + t], strict=True)
            )
            for t, value in enumerate(values)
        ]

    def broadcast(self, value):
        """Worker 0's value."""
        if isinstance(value, tf.IndexedSlices):
            return tf.IndexedSlices(self.broadcast(value.values), self.broadcast(value.indices), value.dense_shape)
        with tf.device(None), tf.device(HOST):
            cluster, object_ = self._handles()
            return ops.onesum_broadcast(
                cluster, object_, tf.convert_to_tensor(value), is_waited_for=tf.executing_eagerly()
            )

    def gather(self, replicas: Replicas, axis: int, options) -> tf.Tensor:
        with tf.device(None), tf.device(HOST):
            cluster, object_ = self._handles()
            return ops.onesum_gather(cluster, object_, replicas, axis=axis, **_values.options_of(options))
