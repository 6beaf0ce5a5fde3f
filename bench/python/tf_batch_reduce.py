"""Times `strategy.extended.batch_reduce_to` of a model's gradients, with onesum's classes and with TensorFlow's own.

    PYTHONPATH=build/python-package python bench/python/tf_batch_reduce.py [--devices N] [--shapes FILE] [--rounds N]

eager     called as it is
function  inside a tf.function, which returns the results of each device as one bundle

The classes take turns, round by round, in one process with N logical CPU devices. Printed are medians, quartiles and
our time over that of TensorFlow's best.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

import onesum.tensorflow
from onesum.tensorflow._bundles import bundled

CLASSES = {
    "onesum ReductionToOneDevice": onesum.tensorflow.ReductionToOneDevice,
    "onesum HierarchicalCopyAllReduce": onesum.tensorflow.HierarchicalCopyAllReduce,
    "TensorFlow ReductionToOneDevice": tf.distribute.ReductionToOneDevice,
    "TensorFlow HierarchicalCopyAllReduce": tf.distribute.HierarchicalCopyAllReduce,
}


def read_shapes(path: Path) -> list[list[int]]:
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return [[int(extent) for extent in words[1:]] for words in lines if words]


def use_devices(count: int) -> list[str]:
    (cpu, *_) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    return [f"CPU:{index}" for index in range(count)]


def steps_of(strategy, shapes):
    """{"eager": …, "function": …}: functions that reduce gradients of these shapes."""
    generator = tf.random.Generator.from_seed(1)
    gradients = [
        strategy.experimental_distribute_values_from_function(lambda _, shape=shape: generator.normal(shape))
        for shape in shapes
    ]

    def reduce(values):
        return strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(value, value) for value in values])

    @tf.function
    def traced():
        # To pass hundreds of distributed values in and out takes Python longer than to reduce them.
        results = reduce(gradients)
        devices = strategy.extended.worker_devices
        return [bundled([result.values[i] for result in results], device) for i, device in enumerate(devices)]

    return {"eager": lambda: reduce(gradients), "function": traced}


def summary(seconds: list[float]) -> str:
    low, middle, high = statistics.quantiles([s * 1e3 for s in seconds], n=4)
    return f"{middle:8.2f} ms  (quartiles {low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", type=Path, default=Path(__file__).parents[1] / "shapes" / "resnet50.txt")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    shapes = read_shapes(arguments.shapes)
    devices = use_devices(arguments.devices)

    steps = {}
    for name, its_class in CLASSES.items():
        strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=its_class())
        for how, step in steps_of(strategy, shapes).items():
            steps[how, name] = step
    times = {key: [] for key in steps}
    for round_number in range(arguments.rounds + 5):
        for key, step in steps.items():
            start = time.perf_counter()
            results = step()
            taken = time.perf_counter() - start
            del results
            if round_number >= 5:
                times[key].append(taken)

    elements = sum(tf.TensorShape(shape).num_elements() for shape in shapes)
    print(
        f"{len(shapes)} tensors, {elements * 4 / 2**20:.1f} MiB, {len(devices)} devices, TensorFlow {tf.__version__}, "
        f"{arguments.rounds} rounds"
    )
    for (how, name), taken in sorted(times.items()):
        print(f"{how:9} {name:37}{summary(taken)}")
    for how in ("eager", "function"):
        medians = {name: statistics.median(times[how, name]) for name in CLASSES}
        theirs = min(taken for name, taken in medians.items() if name.startswith("TensorFlow"))
        for name, taken in medians.items():
            if name.startswith("onesum"):
                print(f"{how:9} {name} takes {taken / theirs:.3f} of TensorFlow's best")


if __name__ == "__main__":
    main()
