"""Models trained with onesum's classes as with TensorFlow's, and with the same bits however replicas are spread."""

import numpy as np
import pytest
import tensorflow as tf
from workers import expect_success, run_workers

import onesum.tensorflow as bridge


def fit(cross_device_ops):
    tf.keras.utils.set_random_seed(3)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)], cross_device_ops=cross_device_ops)
    with strategy.scope():
        layers = [tf.keras.layers.Dense(16, "relu"), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential([tf.keras.layers.Embedding(50, 8), tf.keras.layers.Flatten(), *layers])
        model.compile("adam", "mse", metrics=["mae"])
    inputs = np.random.default_rng(3).integers(0, 50, (256, 4))
    history = model.fit(inputs, inputs.sum(axis=1) / 50, batch_size=32, epochs=3, shuffle=False, verbose=0)
    return history.history["loss"]


@pytest.mark.parametrize(
    "make",
    [bridge.ReductionToOneDevice, bridge.NcclAllReduce, lambda: bridge.AllReduceCrossDeviceOps("xring")],
    ids=["one", "nccl", "ring"],
)
def test_keras_reaches_the_same_loss_as_with_tensorflow(make):
    ours, theirs = fit(make()), fit(tf.distribute.ReductionToOneDevice())
    assert ours[-1] < ours[0]
    assert ours == pytest.approx(theirs, rel=1e-4)


def train(tmp_path, workers, devices, how):
    """Losses, and the weights, which are the same on all workers."""
    name = tmp_path / f"{how}-{workers}"
    ends = run_workers("training.py", workers, str(devices), how, str(name))
    expect_success(ends)
    losses = [float(word) for word in ends[0].out.split()]
    assert losses[-1] < losses[0], losses
    weights = [list(np.load(f"{name}-{rank}.npz").values()) for rank in range(workers)]
    for other in weights[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(weights[0], other, strict=True))
    return losses, weights[0]


def test_the_same_bits_in_two_processes_as_in_one(tmp_path):
    losses_of_one, in_one = train(tmp_path, 1, 4, "loop")
    losses_of_two, in_two = train(tmp_path, 2, 2, "loop")
    assert losses_of_one == losses_of_two
    for one, two in zip(in_one, in_two, strict=True):
        assert np.array_equal(one.view(np.int32), two.view(np.int32))


def test_fit_over_processes_sums_over_all_of_them(tmp_path):
    _, in_one = train(tmp_path, 1, 4, "fit")
    _, in_two = train(tmp_path, 2, 2, "fit")
    for one, two in zip(in_one, in_two, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
