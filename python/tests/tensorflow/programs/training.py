"""Trains a classifier with an embedding. argv: devices of each worker, "loop" or "fit", a file for the weights.

loop  divides by the global batch: the same bits with as many replicas, however they are spread over workers
fit   Keras divides by the replicas of its own process: the rate is divided by the workers here
"""

import sys

import numpy as np
from common import NAMES, RANK, WORKERS, tf, use_devices

import onesum.tensorflow as bridge

DEVICES = use_devices(int(sys.argv[1]))
REPLICAS = WORKERS * len(DEVICES)
BATCH, STEPS, RATE = 32, 16, 0.5

tf.keras.utils.set_random_seed(7 + RANK)  # weights are broadcast
tf.config.experimental.enable_op_determinism()
generator = np.random.default_rng(7)
words = generator.integers(0, 20, (BATCH * STEPS, 5))
labels = words[:, 0] % 3

ops = bridge.MultiWorkerAllReduce(NAMES, len(DEVICES)) if WORKERS > 1 else bridge.ReductionToOneDevice()
strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=ops)


def make_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(20, 8),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(16, activation="tanh"),
            tf.keras.layers.Dense(3),
        ]
    )


def shard(array, step):
    """Of a global batch, what each replica here gets: the same examples wherever the replica is."""
    batch = array[step * BATCH : (step + 1) * BATCH]
    mine = range(RANK * len(DEVICES), (RANK + 1) * len(DEVICES))
    return [batch[i::REPLICAS] for i in mine]


def train_in_a_loop(model):
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")

    def replica_step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(inputs, training=True)) / BATCH
        values = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, values)
        assert isinstance(gradients[0], tf.IndexedSlices)
        context = tf.distribute.get_replica_context()
        total, *gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, [loss, *gradients])
        for value, gradient in zip(values, gradients, strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                value.scatter_sub(tf.IndexedSlices(RATE * gradient.values, gradient.indices))
            else:
                value.assign_sub(RATE * gradient)
        return total

    @tf.function
    def step(inputs, targets):
        return strategy.run(replica_step, args=(inputs, targets))

    def placed(parts):
        return strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(parts[context.replica_id_in_sync_group])
        )

    for number in range(STEPS):
        total = step(placed(shard(words, number)), placed(shard(labels, number)))
        print(float(strategy.experimental_local_results(total)[0]))


def train_by_fit(model):
    model.compile(
        tf.keras.optimizers.SGD(RATE / WORKERS), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    inputs = np.concatenate([np.concatenate(shard(words, step)) for step in range(STEPS)])
    targets = np.concatenate([np.concatenate(shard(labels, step)) for step in range(STEPS)])
    history = model.fit(inputs, targets, batch_size=BATCH // WORKERS, epochs=2, shuffle=False, verbose=0)
    for loss in history.history["loss"]:
        print(loss)


with strategy.scope():
    model = make_model()
    model.build((None, 5))
    for variable in model.variables:
        variable.assign(ops.broadcast(tf.convert_to_tensor(variable), "CPU:0"))
(train_in_a_loop if sys.argv[2] == "loop" else train_by_fit)(model)
np.savez(f"{sys.argv[3]}-{RANK}.npz", *model.get_weights())
