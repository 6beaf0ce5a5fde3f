"""onesum's cross-device classes for TensorFlow's MirroredStrategy, in one process and across worker processes.

    from onesum.tensorflow import MultiWorkerAllReduce
    workers = ["/job:worker/task:0", "/job:worker/task:1"]
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=MultiWorkerAllReduce(workers, 2))

What they do and what they do not: docs/tensorflow.md.
"""

from __future__ import annotations

try:
    import tensorflow as tf
except ImportError as error:
    raise ImportError(
        f"onesum.tensorflow needs TensorFlow, which cannot be imported here: {error}"
    ) from error

try:
    from ._built_for import TENSORFLOW_VERSION as _TENSORFLOW_VERSION
except ImportError as error:
    raise ImportError(
        "this onesum was built without its bridge to TensorFlow; install it again where TensorFlow "
        f"{tf.__version__} is installed (pip install --no-build-isolation onesum)"
    ) from error

if tf.__version__ != _TENSORFLOW_VERSION:
    raise ImportError(
        f"onesum's bridge was built for TensorFlow {_TENSORFLOW_VERSION}, and this is {tf.__version__}; "
        "install onesum again with this TensorFlow (pip install --no-build-isolation --force-reinstall onesum)"
    )

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
