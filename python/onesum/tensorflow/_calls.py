"""The ops of one object: what is called of the library, with TensorFlow's tensors."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from ._bundles import bundled, common_shape, unbundled
from ._handles import HOST, Handles, ops
from ._values import options_of, result_dtype


class Way(NamedTuple):
    """From which devices to which others values go, and whether each of these gets the result of its own replica:
    else all get the same."""

    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    each_its_own: bool


class Calls:
    def __init__(self, handles: Handles):
        self._handles = handles

    def _call(self, op, *arguments, options=None, **attributes):
        with tf.device(None), tf.device(HOST):
            if options is not None:
                attributes |= options_of(options)
            return op(*self._handles(), *arguments, is_waited_for=tf.executing_eagerly(), **attributes)

    def reduce(self, reduce_op, values: list[list[tf.Tensor]], way: Way, options) -> list[tuple[tf.Tensor, ...]]:
        """values[t][r]: replica r of tensor t. Gives for each tensor its sum on each of the destinations."""
        results = self._call(
            ops.onesum_reduce,
            [bundled(tensors, device) for tensors, device in zip(zip(*values), way.sources, strict=True)],
            results=len(way.sources) if way.each_its_own else 1,
            reduce_op=reduce_op.name,
            options=options,
        )
        dtypes = [result_dtype(reduce_op, value[0].dtype) for value in values]
        shapes = [common_shape(value) for value in values]
        return list(
            zip(
                *(
                    unbundled(
                        results[way.sources.index(device) if way.each_its_own else 0], device, dtypes, shapes
                    )
                    for device in way.destinations
                ),
                strict=True,
            )
        )

    def reduce_sparse(
        self, reduce_op, values: list[list[tf.IndexedSlices]], way: Way, options
    ) -> list[tuple[tf.IndexedSlices, ...]]:
        """The same of indexed slices."""
        has_dense_shapes = all(each.dense_shape is not None for value in values for each in value)
        bundles = []
        for slices, device in zip(zip(*values), way.sources, strict=True):
            tensors = [each.values for each in slices] + [each.indices for each in slices]
            if has_dense_shapes:
                tensors += [each.dense_shape for each in slices]
            bundles.append(bundled(tensors, device))
        total = self._call(
            ops.onesum_reduce_sparse,
            bundles,
            has_dense_shapes=has_dense_shapes,
            reduce_op=reduce_op.name,
            options=options,
        )
        dtypes = [result_dtype(reduce_op, value[0].dtype) for value in values]
        dtypes += [max((each.indices.dtype for each in value), key=lambda dtype: dtype.size) for value in values]
        shapes = [tf.TensorShape([None]).concatenate(value[0].values.shape[1:]) for value in values]
        shapes += [tf.TensorShape([None])] * len(values)
        copies = [unbundled(total, device, dtypes, shapes) for device in way.destinations]
        return [
            tuple(tf.IndexedSlices(its[t], its[len(values) + t], value[0].dense_shape) for its in copies)
            for t, value in enumerate(values)
        ]

    def broadcast(self, value):
        """Worker 0's value."""
        if isinstance(value, tf.IndexedSlices):
            return tf.IndexedSlices(self.broadcast(value.values), self.broadcast(value.indices), value.dense_shape)
        return self._call(ops.onesum_broadcast, tf.convert_to_tensor(value))

    def gather(self, replicas: list[tf.Tensor], axis: int, options) -> tf.Tensor:
        return self._call(ops.onesum_gather, replicas, axis=axis, options=options)
