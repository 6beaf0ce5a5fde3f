"""argv[1] says what goes wrong, argv[2] how it is called; prints the error that Python sees."""

import os
import signal
import sys
import threading
import time

from common import NAMES, RANK, WORKERS, tf, use_devices

import onesum.tensorflow as bridge

DEVICES = use_devices(2)
LAST = RANK == WORKERS - 1
SUM = tf.distribute.ReduceOp.SUM
ops = bridge.MultiWorkerAllReduce(NAMES, 2)
strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=ops)


def all_reduce(value, timeout=None):
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=timeout)

    def step():
        return tf.distribute.get_replica_context().all_reduce(SUM, tf.identity(value), options)

    return (tf.function(strategy.run) if sys.argv[2] == "function" else strategy.run)(step)


def killed():
    all_reduce(tf.ones([10]))
    if LAST:
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(1000):
        all_reduce(tf.ones([1000]))


def left():
    """The last worker ends while the others wait for it."""
    all_reduce(tf.ones([10]))
    if not LAST:
        all_reduce(tf.ones([10]))


def late():
    """The last worker does not come."""
    all_reduce(tf.ones([10]))
    if LAST:
        time.sleep(8)
        return
    all_reduce(tf.ones([10]), timeout=2.0)


def shapes():
    all_reduce(tf.ones([10 + RANK]))


def types():
    all_reduce(tf.ones([10], tf.float32 if RANK == 0 else tf.float64))


def kinds():
    """One worker reduces, the other broadcasts."""
    if RANK == 0:
        all_reduce(tf.ones([10]))
    else:
        ops.broadcast(tf.ones([10]), "CPU:0")


def unfinished():
    """Everybody ends with a call under way that cannot end."""
    if not LAST:
        threading.Thread(target=lambda: all_reduce(tf.ones([10])), daemon=True).start()
    time.sleep(3)


def fit():
    """A model that is trained when the last worker is killed."""
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")

    class Killer(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3 and LAST:
                os.kill(os.getpid(), signal.SIGKILL)

    model.fit(tf.ones([4000, 8]), tf.ones([4000, 1]), batch_size=4, epochs=10, verbose=0, callbacks=[Killer()])


try:
    globals()[sys.argv[1]]()
except tf.errors.OpError as error:
    print(type(error).__name__, error.message)
