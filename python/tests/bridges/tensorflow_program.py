# Started as: onesum run -n 2 --no-prefix -- python
"""A sum by a strategy, in two processes that know nothing of each other: each has replicas of its own."""

import tensorflow as tf

from onesum.tensorflow import ReductionToOneDevice

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ReductionToOneDevice())


def replica_fn():
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.fill([3], float(replica.replica_id_in_sync_group + 1)))


results = strategy.experimental_local_results(strategy.run(replica_fn))
assert [result.numpy().tolist() for result in results] == [[3.0] * 3] * 2, results
print("good")
