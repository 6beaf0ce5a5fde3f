"""Every call of every class, over all workers, eager and in functions. argv[1]: devices of each worker."""

import sys

from common import NAMES, RANK, WORKERS, tf, use_devices

import onesum.tensorflow as bridge

DEVICES = use_devices(int(sys.argv[1]))
PER_WORKER = len(DEVICES)
TOTAL = WORKERS * PER_WORKER
MINE = range(RANK * PER_WORKER, (RANK + 1) * PER_WORKER)
SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def check(found, expected, what):
    found = tf.convert_to_tensor(found).numpy().tolist()
    if found != expected:
        sys.exit(f"worker {RANK}: {what}: found {found}, expected {expected}")


def distributed(strategy, fn):
    """fn(number of the replica among those of all workers) on each device."""
    return strategy.experimental_distribute_values_from_function(lambda context: fn(MINE[context.replica_id_in_sync_group]))


def check_reductions(strategy, ops, name):
    dense = distributed(strategy, lambda i: tf.fill([3, 2], float(i)))
    integers = distributed(strategy, lambda i: tf.constant([i], tf.int64))
    total, mean = [[TOTAL * (TOTAL - 1) / 2] * 2] * 3, [(TOTAL - 1) / 2]
    sums = strategy.extended.batch_reduce_to(SUM, [(dense, dense), (integers, integers)])
    for each in strategy.experimental_local_results(sums[0]):
        check(each, total, f"{name}: sum")
    means = strategy.extended.batch_reduce_to(MEAN, [(integers, integers)])
    for each in strategy.experimental_local_results(means[0]):
        check(each, mean, f"{name}: mean of integers")
    check(ops.reduce(SUM, dense, "CPU:0"), total, f"{name}: to one device")


def check_copies(strategy, ops, name):
    rows = distributed(strategy, lambda i: tf.fill([i + 1, 1], float(i)))
    gathered = [[float(i)] for i in range(TOTAL) for _ in range(i + 1)]
    check(ops._gather(rows, "CPU:0", 0), gathered, f"{name}: gather")
    check(ops.broadcast(tf.constant([RANK + 7.0]), "CPU:0"), [7.0], f"{name}: broadcast")


def check_replica_calls(strategy, name):
    def step():
        context = tf.distribute.get_replica_context()
        number = tf.cast(MINE[0] + context.replica_id_in_sync_group, tf.float32)
        slices = tf.IndexedSlices(tf.fill([2, 2], number), tf.constant([1, 4]), tf.constant([5, 2]))
        dense, sparse = context.all_reduce(SUM, [tf.fill([70000], number), slices])
        return dense[-1], sparse.values, sparse.indices

    for how, run in (("eager", strategy.run), ("function", tf.function(strategy.run))):
        for _ in range(3):
            dense, rows, indices = (strategy.experimental_local_results(each) for each in run(step))
            for replica in range(PER_WORKER):
                check(dense[replica], TOTAL * (TOTAL - 1) / 2, f"{name}, {how}: dense")
                check(rows[replica], [[float(i)] * 2 for i in range(TOTAL) for _ in range(2)], f"{name}, {how}: rows")
                check(indices[replica], [1, 4] * TOTAL, f"{name}, {how}: indices")


def many_calls_in_one_graph(ops):
    """Their order is that of the program on all workers, whatever TensorFlow does at the same time."""
    other = bridge.AllReduceCrossDeviceOps("auto", cluster="environment")

    @tf.function
    def calls(x):
        total = tf.constant(0.0)
        for size in range(1, 20):
            value = tf.fill([size], x)
            first = (ops if size % 2 else other).reduce(SUM, value, "CPU:0")
            other.reduce(SUM, tf.fill([size + 100], x), "CPU:0")
            total += first[0]
        for size in tf.range(5):
            total += ops.reduce(SUM, tf.fill([size + 1], x), "CPU:0")[0]
        return total

    for _ in range(5):
        check(calls(tf.constant(1.0)), 24.0 * WORKERS, "many calls")


DUPLICATE = bridge._handles.environment().duplicate()
CLASSES = {
    "multi": lambda: bridge.MultiWorkerAllReduce(NAMES, PER_WORKER),
    "multi rings": lambda: bridge.MultiWorkerAllReduce(NAMES, PER_WORKER, [("pscpu", 1, 100), ("xring", 2, -1)]),
    "one": lambda: bridge.ReductionToOneDevice(cluster="environment"),
    "one on": lambda: bridge.ReductionToOneDevice("/job:worker/task:1/CPU:0", cluster="environment"),
    "one with a function": lambda: bridge.ReductionToOneDevice(accumulation_fn=tf.math.add_n, cluster="environment"),
    "nccl": lambda: bridge.NcclAllReduce(cluster="environment"),
    "on another cluster": lambda: bridge.AllReduceCrossDeviceOps("auto", cluster=DUPLICATE),
    "multi on another cluster": lambda: bridge.MultiWorkerAllReduce(NAMES, PER_WORKER, cluster=DUPLICATE),
    "hierarchical": lambda: bridge.HierarchicalCopyAllReduce(2, cluster="environment"),
}
for name, make in CLASSES.items():
    ops = make()
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=ops)
    check_reductions(strategy, ops, name)
    check_copies(strategy, ops, name)
    check_replica_calls(strategy, name)
many_calls_in_one_graph(bridge.MultiWorkerAllReduce(NAMES, PER_WORKER))
