"""The library of ops, and the handles by which they know clusters and objects.

A handle is a resource of TensorFlow. All objects on the environment's cluster have the same handle of it, and each
op takes it: so the calls of a function are made one after the other, in the order in which they were traced.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import threading
from collections.abc import Sequence

import tensorflow as tf

import onesum
from onesum import _bridges

_PATH = _bridges.library("tensorflow")
ops = tf.load_op_library(str(_PATH))
_leave_all = ctypes.CDLL(str(_PATH)).onesum_tensorflow_leave

HOST = "/device:CPU:0"  # where the ops run: all memory is the host's

_lock = threading.RLock()
_environment = None
_given = {}  # by address, a cluster that a user has given and its handle


@functools.cache
def environment() -> onesum.Cluster:
    """The workers that the launcher of this process has started. It stays among them until it ends."""
    return onesum.Cluster.from_environment()


@atexit.register
def _leave() -> None:
    """So that calls under way fail, and nothing waits for them."""
    _leave_all()
    environment.cache_clear()


class Handles:
    """Of one object and its cluster. They are made when they are first wanted, because this initializes
    TensorFlow's devices."""

    def __init__(
        self, source: str | onesum.Cluster, kind: str, worker_devices: Sequence[str] = (), **attributes
    ):
        """`source`: of the cluster, "local", "environment" or "embedded", or itself. The rest: of the object."""
        self._source = source
        self._object = {"kind": kind, "worker_devices": list(worker_devices), **attributes}
        self._made = None

    def __call__(self):
        """(cluster, object)"""
        with _lock:
            if self._made is None:
                with tf.init_scope(), tf.device(None), tf.device(HOST):
                    if not tf.executing_eagerly():
                        raise RuntimeError(
                            "onesum.tensorflow needs TensorFlow 2's behaviour (eager execution and tf.function), "
                            "which is disabled here"
                        )
                    cluster = self._cluster()
                    self._made = cluster, ops.onesum_object(cluster=cluster, **self._object)
        return self._made

    def _cluster(self):
        global _environment
        if isinstance(self._source, onesum.Cluster):
            return self._given_cluster(self._source)
        if self._source == "environment" and _environment is not None:
            return _environment
        cluster = ops.onesum_cluster(
            source=self._source,
            worker_devices=self._object["worker_devices"],
            devices_per_worker=max(self._object.get("num_gpus_per_worker", 0), 1),
        )
        if self._source == "environment":
            _environment = cluster
        return cluster

    @staticmethod
    def _given_cluster(cluster: onesum.Cluster):
        address = cluster._address
        if address not in _given:
            handle = ops.onesum_cluster(source="given", address=address, worker_devices=[], devices_per_worker=1)
            _given[address] = cluster, handle
        return _given[address][1]
