"""The meaning of reduce, batch_reduce, broadcast and gather, for every class on CPU devices of one process."""

import itertools

import pytest
import tensorflow as tf
from replicas import MEAN, SUM, arrays, devices, devices_of, mirrored, parts, per_replica

import onesum.tensorflow as bridge

WORKERS = ["/job:worker/task:0", "/job:worker/task:1"]
SPECS = {
    "default": {},
    "packed": {"num_packs": 1},
    "small": {"agg_small_grads_max_bytes": 100},
    "two": {"all_reduce_spec": [("pscpu/pscpu", 2, 100), ("xring", 2, -1)]},
}
CLASSES = {
    "one": bridge.ReductionToOneDevice,
    "one_on": lambda: bridge.ReductionToOneDevice("CPU:0"),
    "one_fn": lambda: bridge.ReductionToOneDevice(accumulation_fn=tf.math.add_n),
    "base": bridge.AllReduceCrossDeviceOps,
    "base_unpacked": lambda: bridge.AllReduceCrossDeviceOps("nccl", 0),
    "base_small": lambda: bridge.AllReduceCrossDeviceOps("hierarchical_copy", 0, 100, 10),
    "ring": lambda: bridge.AllReduceCrossDeviceOps("xring"),
    "nccl": bridge.NcclAllReduce,
    "hierarchical": lambda: bridge.HierarchicalCopyAllReduce(8),
}


def multi_worker(name, count):
    """As many workers as have two devices each."""
    return bridge.MultiWorkerAllReduce(WORKERS[: (count + 1) // 2], min(count, 2), **SPECS[name])


def cases():
    for name, count in itertools.product(CLASSES, [1, 2, 3, 4]):
        yield pytest.param(lambda _, name=name: CLASSES[name](), count, id=f"{name}-{count}")
    for name, count in itertools.product(SPECS, [2, 4]):
        yield pytest.param(lambda n, name=name: multi_worker(name, n), count, id=f"multi_{name}-{count}")


@pytest.mark.parametrize(("make", "count"), list(cases()))
def test_core_matrix(make, count):
    ops = make(count)
    on, first = devices(count), devices(1)
    a = per_replica([tf.constant(float(i)) for i in range(count)])
    b = per_replica([tf.constant(float(i + 1)) for i in range(count)])
    destinations = [(mirrored(tf.constant(0.0), on), on), (mirrored(tf.constant(0.0), first), first), ("CPU:0", first)]
    expected = {
        SUM: (count * (count - 1) / 2, count * (count + 1) / 2),
        MEAN: ((count - 1) / 2, (count + 1) / 2),
    }
    for op, (of_a, of_b) in expected.items():
        for destination, where in destinations:
            for value, total in ((a, of_a), (b, of_b)):
                result = ops.reduce(op, value, destination)
                assert arrays(result) == [total] * len(where)
                assert devices_of(result) == where
        for (to_x, x), (to_y, y) in itertools.product(destinations, repeat=2):
            results = ops.batch_reduce(op, [(a, to_x), (b, to_y)])
            assert [arrays(result) for result in results] == [[of_a] * len(x), [of_b] * len(y)]
            assert [devices_of(result) for result in results] == [x, y]
    for destination, where in destinations:
        assert arrays(ops.broadcast(tf.constant(1.0), destination)) == [1.0] * len(where)


FIRST, SECOND = ([[1, 2]], [1], [5, 2]), ([[3, 4], [5, 6]], [1, 3], [5, 2])
SPARSE_CLASSES = [*(pytest.param(make, id=name) for name, make in CLASSES.items())] + [
    pytest.param(lambda: multi_worker("default", 2), id="multi")
]


@pytest.mark.parametrize("make", SPARSE_CLASSES)
def test_sparse(make, in_mode):
    ops = make()
    for shape in ([5, 2], None):
        for op, rows in ((SUM, [[1, 2], [3, 4], [5, 6]]), (MEAN, [[0.5, 1], [1.5, 2], [2.5, 3]])):

            def both(op=op, shape=shape):
                value = per_replica([(*FIRST[:2], shape), (*SECOND[:2], shape)])
                result = ops.reduce(op, value, value)
                # Here, because a tf.function's results are all on its own device.
                assert [each.values.device for each in result.values] == devices(2)
                return [result, *ops.batch_reduce(op, [(value, value), (value, "CPU:1")])]

            alone, batched, on_one = in_mode(both)
            for slices in (*alone, *batched, *on_one):
                assert parts(slices) == (rows, [1, 1, 3])
                assert (slices.dense_shape is None) == (shape is None)


@pytest.mark.parametrize("make", SPARSE_CLASSES)
def test_batches_of_dense_and_sparse_keep_their_order(make, in_mode):
    ops = make()

    def all_at_once():
        dense = per_replica([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])])
        short = per_replica([([[1]], [0], [10, 1]), ([[2], [3], [4]], [0, 1, 2], [10, 1])])
        long = per_replica([([[1], [2]], [0, 1], [5, 1]), ([[3], [4]], [1, 2], [5, 1])])
        half = per_replica([tf.constant([1, 2], tf.float16), tf.constant([3, 4], tf.float16)])
        values = [short, dense, long, half]
        return ops.batch_reduce(SUM, [(value, value) for value in values])

    short, dense, long, half = in_mode(all_at_once)
    assert arrays(dense) == arrays(half) == [[4, 6]] * 2
    assert parts(short[1]) == ([[1], [2], [3], [4]], [0, 0, 1, 2])
    assert parts(long[0]) == ([[1], [2], [3], [4]], [0, 1, 1, 2])


def test_dense_and_sparse_replicas_of_one_value_are_dense(in_mode):
    def reduced():
        value = per_replica([tf.ones([2, 2]), ([[2, 3], [4, 5]], [1, 1], [2, 2])])
        return [bridge.ReductionToOneDevice().reduce(SUM, value, value)]

    assert arrays(in_mode(reduced)[0]) == [[[1, 1], [7, 9]]] * 2


@pytest.mark.parametrize("make", [bridge.ReductionToOneDevice, lambda: bridge.AllReduceCrossDeviceOps("xring")])
def test_a_mirrored_variable_is_its_values_and_stays_as_it_is(make):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=make())
    with strategy.scope():
        variable = tf.Variable(1.0)
    ops = make()
    assert arrays(ops.reduce(MEAN, variable, variable)) == [1.0, 1.0]
    assert arrays(ops.batch_reduce(SUM, [(variable, variable)])[0]) == [2.0, 2.0]
    assert variable.numpy() == 1.0


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gather(axis, in_mode):
    def gathered():
        value = per_replica([tf.constant([[[1, 2], [1, 2]]])] * 3)
        strategy = tf.distribute.MirroredStrategy(devices(3), cross_device_ops=bridge.ReductionToOneDevice())
        return [strategy.gather(value, axis)]

    ((result,),) = in_mode(gathered)
    assert result.numpy().tolist() == tf.concat([tf.constant([[[1, 2], [1, 2]]])] * 3, axis).numpy().tolist()


def test_gather_of_different_lengths():
    value = per_replica([tf.zeros([1, 2]), tf.ones([3, 2])])
    assert bridge.NcclAllReduce()._gather(value, "CPU:1", 0).shape == [4, 2]


def test_an_empty_batch_is_an_empty_list():
    assert bridge.ReductionToOneDevice().batch_reduce(SUM, []) == []


def test_destinations_in_another_order_and_interleaved():
    value = per_replica([tf.constant(1.0), tf.constant(2.0), tf.constant(4.0)])
    where = [devices(3)[i] for i in (2, 0, 1)]
    for make in (bridge.ReductionToOneDevice, lambda: bridge.AllReduceCrossDeviceOps("xring")):
        result = make().reduce(SUM, value, mirrored(tf.constant(0.0), where))
        assert arrays(result) == [7.0] * 3 and devices_of(result) == where


def test_sums_are_canonical_and_rings_have_their_own_order():
    value = per_replica([tf.fill([4], x) for x in (1e8, 1.0, -1e8, 1.0)])
    for make in (bridge.ReductionToOneDevice, bridge.NcclAllReduce, lambda: multi_worker("default", 4)):
        assert arrays(make().reduce(SUM, value, value)) == [[0.0] * 4] * 4
    ring = bridge.AllReduceCrossDeviceOps("xring")
    assert arrays(ring.reduce(SUM, value, value)) == [[0.0, 1.0, 0.0, 1.0]] * 4
