"""onesum's cross-device classes for TensorFlow's MirroredStrategy, in one process and across worker processes.

    from onesum.tensorflow import MultiWorkerAllReduce
    workers = ["/job:worker/task:0", "/job:worker/task:1"]
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=MultiWorkerAllReduce(workers, 2))

What they do and what they do not: docs/tensorflow.md.
"""

from __future__ import annotations

try:
    import tensorflow
except ImportError as error:
    raise ImportError(
        f"onesum.tensorflow needs TensorFlow, which cannot be imported here: {error}"
    ) from error

from ._classes import (
    AllReduceCrossDeviceOps,
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    MultiWorkerAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)

__all__ = [
    "AllReduceCrossDeviceOps",
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "MultiWorkerAllReduce",
    "NcclAllReduce",
    "ReductionToOneDevice",
]
