"""Types, memory, order and errors of single calls, in one process."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from replicas import MEAN, SUM, arrays, components_of, per_replica

import onesum
import onesum.tensorflow as bridge

NUMBERS = [
    *(tf.uint8, tf.int8, tf.uint16, tf.int16, tf.uint32, tf.int32, tf.uint64, tf.int64),
    *(tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128),
]


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_types(dtype, in_mode):
    def reduced():
        value = per_replica([tf.cast([1, 2], dtype), tf.cast([2, 5], dtype)])
        return [bridge.ReductionToOneDevice().reduce(op, value, value) for op in (SUM, MEAN)]

    (total, _), (mean, _) = in_mode(reduced)
    small_integers = (tf.uint8, tf.int8, tf.uint16, tf.int16)
    expected = (tf.float32 if dtype in small_integers else tf.float64) if dtype.is_integer else dtype
    assert total.dtype == dtype and mean.dtype == expected
    assert tf.cast(total, tf.complex128).numpy().tolist() == [3, 7]
    assert tf.cast(mean, tf.complex128).numpy().tolist() == [1.5, 3.5]


@pytest.mark.parametrize("shape", [[], [0], [3, 0], [1], [2, 3, 4]])
def test_shapes(shape, in_mode):
    def reduced():
        value = per_replica([tf.ones(shape), tf.ones(shape)])
        result = bridge.AllReduceCrossDeviceOps("xring").reduce(SUM, value, value)
        assert result.values[0].shape == shape  # known when traced
        return [result]

    assert arrays(in_mode(reduced)[0]) == [np.full(shape, 2.0).tolist()] * 2


def test_shapes_that_are_known_only_when_called():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def total(rows):
        value = per_replica([rows, 2 * rows])
        return bridge.ReductionToOneDevice().reduce(SUM, value, value).values

    for count in (1, 5, 0):
        assert [each.shape for each in total(tf.ones([count, 2]))] == [[count, 2]] * 2


def test_inputs_are_never_changed():
    """Neither by calls that may write over what nobody else holds."""
    held = [tf.fill([1000], float(i)) for i in range(3)]
    ops = bridge.ReductionToOneDevice()

    @tf.function
    def doubled():
        fresh = per_replica([2 * each for each in held])
        total = ops.reduce(SUM, fresh, fresh).values
        again = ops.reduce(SUM, fresh, fresh).values  # what was reduced before is as it was
        return total, again, ops.reduce(SUM, per_replica(held), "CPU:0")

    for _ in range(3):
        total, again, of_held = doubled()
        assert {float(each[0]) for each in (*total, *again)} == {6.0}
        assert of_held.numpy().tolist() == [3.0] * 1000
    assert [each.numpy().tolist() for each in held] == [[float(i)] * 1000 for i in range(3)]


def test_results_outlive_their_object_and_each_other():
    value = per_replica([tf.ones([100000]), tf.ones([100000])])
    results = [bridge.HierarchicalCopyAllReduce().reduce(SUM, value, value) for _ in range(20)]
    kept = [components_of(result)[1] for result in results]
    del results
    gc.collect()
    bridge.ReductionToOneDevice().reduce(MEAN, value, value)
    assert all(each.numpy().min() == each.numpy().max() == 2.0 for each in kept)


def test_one_object_in_many_threads():
    ops = bridge.ReductionToOneDevice()
    value = per_replica([tf.ones([1000]), tf.ones([1000])])
    total = tf.function(lambda x: ops.reduce(SUM, per_replica([x, x]), "CPU:0"))

    def work(index):
        results = [ops.reduce(SUM, value, value).values[1] if index % 2 else total(value.values[0]) for _ in range(20)]
        return all(float(tf.reduce_sum(each)) == 2000 for each in results)

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))


def test_calls_of_a_function_are_ordered_and_none_is_left_out():
    ops = bridge.ReductionToOneDevice()

    @tf.function
    def many(x):
        value = per_replica([x, x])
        for _ in range(3):
            ops.reduce(SUM, value, "CPU:0")  # nobody wants the result
        for _ in tf.range(4):
            ops.reduce(MEAN, value, value)

    graph = many.get_concrete_function(tf.TensorSpec([2])).graph
    calls = [op for op in graph.get_operations() if op.type == "OnesumReduce"]
    assert len(calls) == 3
    for earlier, later in zip(calls, calls[1:], strict=False):
        assert earlier in later.control_inputs
    loop = next(op for op in graph.get_operations() if op.type in ("While", "StatelessWhile"))
    assert loop.type == "While" and calls[-1] in loop.control_inputs


def test_timeouts_and_hints_are_taken():
    value = per_replica([tf.ones([10]), tf.ones([10])])
    options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=16, timeout_seconds=5.0)
    assert arrays(bridge.NcclAllReduce().reduce(SUM, value, value, options)) == [[2.0] * 10] * 2
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=-1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="timeout"):
        bridge.NcclAllReduce().reduce(SUM, value, value, options)


@pytest.mark.parametrize(
    ("components", "text"),
    [
        ([tf.zeros([2]), tf.zeros([3])], r"\[2\].*\[3\]|\[3\].*\[2\]"),
        ([tf.zeros([2]), tf.zeros([2], tf.float64)], "float64"),
        ([tf.constant([True]), tf.constant([True])], "bool"),
        ([tf.constant(["a"]), tf.constant(["b"])], "string"),
    ],
    ids=["shapes", "dtypes", "bool", "string"],
)
def test_values_that_cannot_be_added(components, text, in_mode):
    def reduced():
        value = per_replica(components)
        return [bridge.ReductionToOneDevice().reduce(SUM, value, value)]

    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        in_mode(reduced)


def test_constructors_refuse_what_is_wrong():
    for make, text in (
        (lambda: bridge.NcclAllReduce(-1), "num_packs"),
        (lambda: bridge.AllReduceCrossDeviceOps("pscpo"), "pscpu"),
        (lambda: bridge.ReductionToOneDevice("CPU:x"), "CPU:x"),
        (lambda: bridge.MultiWorkerAllReduce([], 1), "worker_devices"),
        (lambda: bridge.MultiWorkerAllReduce(["/job:worker/task:0"], 1, ("nccl", 0)), "shards"),
        (lambda: bridge.MultiWorkerAllReduce(["/job:worker/task:0"], 1, "nccl:1k"), "nccl:1k"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    with pytest.raises(TypeError, match="environment"):
        bridge.NcclAllReduce(cluster="elsewhere")


def test_clusters_of_the_caller():
    values = [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]
    value = per_replica(values)
    workers = ["/job:worker/task:0", "/job:worker/task:1"]
    for make in (
        lambda: bridge.ReductionToOneDevice(cluster=onesum.Cluster.local()),
        lambda: bridge.AllReduceCrossDeviceOps("xring", cluster=onesum.Cluster.embedded(workers, 1)),
        lambda: bridge.MultiWorkerAllReduce(workers, 1, cluster=onesum.Cluster.embedded(workers, 1)),
    ):
        ops = make()  # which keeps its cluster
        for _ in range(2):
            result = ops.reduce(tf.distribute.ReduceOp.SUM, value, value)
            assert result.values[0].numpy().tolist() == [4.0, 6.0]


def test_other_operations_are_refused():
    value = per_replica([tf.ones([1]), tf.ones([1])])
    with pytest.raises(ValueError, match="reduce_op is 'MAX'"):
        bridge.ReductionToOneDevice().reduce("MAX", value, value)


def test_embedded_workers_must_have_as_many_devices():
    value = per_replica([tf.ones([1])] * 3)
    ops = bridge.MultiWorkerAllReduce(["/job:worker/task:0", "/job:worker/task:1"], 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 replicas.*2 devices"):
        ops.reduce(SUM, value, value)


def test_gpus_are_served_by_way_of_the_host():
    from onesum.tensorflow import _bundles, _classes

    assert _bundles.host_of("/job:localhost/replica:0/task:0/device:GPU:1") == "/device:CPU:0"
    assert _bundles.host_of("/device:CPU:1") == "/device:CPU:1"
    assert _classes._on_host("gpu:1").endswith("CPU:1")
