"""The classes, for tf.distribute.MirroredStrategy(cross_device_ops=…)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import tensorflow as tf

import onesum

from ._calls import Calls, Way
from ._handles import Handles, environment
from ._values import check_reduce_op, copied, devices_of, mirrored, replicas_of, result_dtype


class CrossDeviceOps(tf.distribute.CrossDeviceOps):
    """What all classes have in common. A call is one op for all dense values that go the same way, and one for all
    sparse ones."""

    def __init__(self, handles: Handles, workers: int, shares_results: bool):
        """`workers`: processes that take part. `shares_results`: one result serves all devices of this process;
        else the algorithm gives each its own."""
        super().__init__()
        self._workers = workers
        self._shares_results = shares_results
        self._calls = Calls(handles)

    @property
    def _num_between_graph_workers(self) -> int:
        return self._workers

    def batch_reduce(self, reduce_op, value_destination_pairs, options=None):
        pairs = list(value_destination_pairs)
        return super().batch_reduce(reduce_op, pairs, options) if pairs else []

    def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
        return self.batch_reduce_implementation(reduce_op, [(per_replica_value, destinations)], options)[0]

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        check_reduce_op(reduce_op)
        values = [replicas_of(value) for value, _ in value_destination_pairs]
        groups = defaultdict(list)  # what goes the same way, by position in the batch
        for position, (value, destination) in enumerate(value_destination_pairs):
            is_sparse = isinstance(values[position][0], tf.IndexedSlices)
            groups[is_sparse, self._way(value, destination, is_sparse)].append(position)
        results = [None] * len(values)
        for (is_sparse, way), positions in groups.items():
            reduced = (self._calls.reduce_sparse if is_sparse else self._reduce)(
                reduce_op, [values[position] for position in positions], way, options
            )
            for position, copies in zip(positions, reduced, strict=True):
                results[position] = mirrored(copies)
        return results

    def _way(self, value, destination, is_sparse: bool) -> Way:
        sources, destinations = devices_of(value), devices_of(destination)
        is_shared = is_sparse or self._shares_results or set(sources) != set(destinations)
        return Way(sources, destinations, each_its_own=not is_shared)

    def _reduce(self, reduce_op, values, way: Way, options):
        return self._calls.reduce(reduce_op, values, way, options)

    def broadcast_implementation(self, tensor, destinations):
        if self._workers > 1:
            tensor = self._calls.broadcast(tensor)
        return super().broadcast_implementation(tensor, destinations)

    def _gather_implementation(self, per_replica_value, destinations, axis, options):
        gathered = self._calls.gather(replicas_of(per_replica_value), axis, options)
        return mirrored(copied(gathered, devices_of(destinations)))


def _cluster_of(cluster) -> tuple[str | onesum.Cluster, onesum.Cluster]:
    """Where an object's cluster comes from, for its handle, and that cluster."""
    if isinstance(cluster, onesum.Cluster):
        return cluster, cluster
    if cluster is None:
        return "local", onesum.Cluster.local()
    if cluster == "environment":
        return "environment", environment()
    raise TypeError(
        f"cluster is {cluster!r}; expected None (this process alone), \"environment\" (the workers that the launcher "
        "of this process has started) or an onesum.Cluster"
    )


def _processes_of(cluster: onesum.Cluster) -> int:
    """One that has devices has them in this process."""
    return 1 if cluster.devices else cluster.size


class ReductionToOneDevice(CrossDeviceOps):
    """Sums on one device, then copies.

    reduce_to_device  where the sum is formed: its host; None: that of the first device of each destination
    accumulation_fn   gets the components of a dense value as a list of tensors, in replica order, and returns their
                      sum; it is computed by TensorFlow, over processes by each of them
    cluster           None: this process alone; "environment": the workers that the launcher has started; or a
                      Cluster
    """

    def __init__(
        self,
        reduce_to_device: str | None = None,
        accumulation_fn: Callable[[list[tf.Tensor]], tf.Tensor] | None = None,
        cluster: str | onesum.Cluster | None = None,
    ):
        source, joined = _cluster_of(cluster)
        on = None if reduce_to_device is None else _on_host(reduce_to_device)
        onesum.ReductionToOneDevice(on, cluster=joined)  # which refuses what is wrong
        handles = Handles(source, "ReductionToOneDevice", reduce_to_device=on or "")
        super().__init__(handles, _processes_of(joined), shares_results=True)
        self.reduce_to_device = reduce_to_device
        self.accumulation_fn = accumulation_fn

    def _reduce(self, reduce_op, values, way, options):
        if self.accumulation_fn is None:
            return super()._reduce(reduce_op, values, way, options)
        return [self._accumulated(reduce_op, replicas, way, options) for replicas in values]

    def _accumulated(self, reduce_op, replicas, way, options):
        on = self.reduce_to_device or way.destinations[0]
        if self._workers > 1:  # each computes it for itself
            on = way.destinations[0]
            gathered = self._calls.gather([tf.stack(replicas)], 0, options)
            replicas = tf.unstack(gathered, num=self._workers * len(replicas))
        with tf.device(None), tf.device(on):
            total = self.accumulation_fn(replicas)
            if reduce_op == tf.distribute.ReduceOp.MEAN:
                total = tf.cast(total, result_dtype(reduce_op, total.dtype)) / len(replicas)
        return copied(total, way.destinations)


def _on_host(device: str) -> str:
    """The same device with all that the library is to see of it: the host's memory."""
    return onesum.Device(device).to_string().replace("device:GPU", "device:CPU")


class AllReduceCrossDeviceOps(CrossDeviceOps):
    """One algorithm for all tensors: "nccl", "hierarchical_copy", "xring", "nccl/rechd", "auto", …"""

    def __init__(
        self,
        all_reduce_alg: str = "nccl",
        num_packs: int = 1,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
        cluster: str | onesum.Cluster | None = None,
    ):
        source, joined = _cluster_of(cluster)
        packing = (num_packs, agg_small_grads_max_bytes, agg_small_grads_max_group)
        onesum.AllReduceCrossDeviceOps(all_reduce_alg, *packing, cluster=joined)  # which refuses what is wrong
        handles = Handles(
            source,
            self._KIND,
            all_reduce=all_reduce_alg,
            num_packs=num_packs,
            agg_small_grads_max_bytes=agg_small_grads_max_bytes,
            agg_small_grads_max_group=agg_small_grads_max_group,
        )
        super().__init__(handles, _processes_of(joined), _shares_results(all_reduce_alg, joined))

    _KIND = "AllReduceCrossDeviceOps"  # the library's class


def _shares_results(algorithms: str, cluster: onesum.Cluster) -> bool:
    """Inside one worker all algorithms are one, but for rings, whose sums have another order."""
    return cluster.size == 1 and "ring" not in algorithms


class NcclAllReduce(AllReduceCrossDeviceOps):
    """NCCL's place: on the host our own reduce takes it."""

    def __init__(self, num_packs: int = 1, cluster: str | onesum.Cluster | None = None):
        super().__init__("nccl", num_packs, cluster=cluster)

    _KIND = "NcclAllReduce"


class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """Sums in two halves of the devices, then across."""

    def __init__(self, num_packs: int = 1, cluster: str | onesum.Cluster | None = None):
        super().__init__("hierarchical_copy", num_packs, cluster=cluster)

    _KIND = "HierarchicalCopyAllReduce"


class MultiWorkerAllReduce(CrossDeviceOps):
    """Algorithms by the size of tensors, over several workers: those of the cluster, or of the environment, which
    must be `worker_devices` in rank order. Where it names none they are embedded in this process: a strategy of
    len(worker_devices) * num_gpus_per_worker devices then has them worker by worker.

    all_reduce_spec   ("nccl", 2, 1024), or a list of such, or text: "nccl#2:1k:pscpu/pscpu#2"
    """

    def __init__(
        self,
        worker_devices: Sequence[str],
        num_gpus_per_worker: int,
        all_reduce_spec=("pscpu/pscpu", 2, -1),
        num_packs: int = 0,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
        cluster: str | onesum.Cluster | None = None,
    ):
        source, joined = _cluster_of("environment" if cluster is None else cluster)
        if cluster is None and joined.size == 1:
            source, joined = "embedded", onesum.Cluster.embedded(worker_devices, max(num_gpus_per_worker, 1))
        specs = onesum.AllReduceSpecs(all_reduce_spec)
        packing = (num_packs, agg_small_grads_max_bytes, agg_small_grads_max_group)
        onesum.MultiWorkerAllReduce(worker_devices, num_gpus_per_worker, specs, *packing, cluster=joined)
        handles = Handles(
            source,
            "MultiWorkerAllReduce",
            worker_devices,
            all_reduce=str(specs),
            num_packs=num_packs,
            agg_small_grads_max_bytes=agg_small_grads_max_bytes,
            agg_small_grads_max_group=agg_small_grads_max_group,
            num_gpus_per_worker=num_gpus_per_worker,
        )
        super().__init__(handles, _processes_of(joined), _shares_results(str(specs), joined))
