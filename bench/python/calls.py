#!/usr/bin/env python3
"""What calls from Python cost, against the same calls from C++ (`onesum bench`), in turns.

    PYTHONPATH=build/python-package build/python/bin/python bench/python/calls.py [--rounds 5]

Prints medians over all rounds, in microseconds: small calls of 4 bytes on 2 devices, and batch_reduce of the ResNet-50
gradients (bench/shapes/resnet50.txt) from NumPy arrays with results of the library's.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np

import onesum

ROOT = pathlib.Path(__file__).parents[2]
SHAPES = ROOT / "bench" / "shapes" / "resnet50.txt"
TOOL = pathlib.Path(onesum.__file__).parent / "bin" / "onesum"
SUM = onesum.ReduceOp.SUM


def cpp(*options):
    """{case: median} of `onesum bench`."""
    command = [TOOL, "bench", "--devices", "2", "--rounds", "1", "--budget", "0.3", "--json", *options]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {one["case"]: one["us_median"] for one in map(json.loads, lines)}


def median_us(call, samples, calls_per_sample):
    call()
    times = []
    for _ in range(samples):
        start = time.perf_counter_ns()
        for _ in range(calls_per_sample):
            call()
        times.append((time.perf_counter_ns() - start) / calls_per_sample / 1000)
    return statistics.median(times)


def small_calls():
    ops = onesum.ReductionToOneDevice()
    arrays = [np.ones(1, np.float32), np.zeros(1, np.float32)]
    value = onesum.PerReplica(arrays)
    prepared = ops.prepare(SUM, [value], [value])
    calls = {
        "prepared.run()": prepared.run,
        "reduce_into, values made before": lambda: ops.reduce_into(SUM, value, value),
        "reduce_into, NumPy arrays": lambda: ops.reduce_into(SUM, arrays, arrays),
        "reduce, NumPy arrays": lambda: ops.reduce(SUM, arrays, "CPU:0"),
    }
    return {name: median_us(call, 200, 500) for name, call in calls.items()}


def gradients():
    shapes = [tuple(map(int, line.split()[1:])) for line in SHAPES.read_text().splitlines() if line.strip()]
    ops = onesum.ReductionToOneDevice()
    batch = [[np.ones(shape, np.float32) for _ in range(2)] for shape in shapes]

    def call():
        pairs = []
        for arrays in batch:
            value = onesum.PerReplica(arrays)
            pairs.append((value, value))
        return ops.batch_reduce(SUM, pairs)

    return {"batch_reduce, NumPy arrays": median_us(call, 40, 1)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    rounds = arguments.parse_args().rounds
    found = {}
    for _ in range(rounds):
        for label, measure in (
            ("C++, 4 B", lambda: cpp("--sizes", "4")),
            ("Python, 4 B", small_calls),
            ("C++, ResNet-50", lambda: cpp("--shapes", str(SHAPES))),
            ("Python, ResNet-50", gradients),
        ):
            for name, time_us in measure().items():
                found.setdefault((label, name), []).append(time_us)
    for (label, name), times in found.items():
        print(f"{label:20} {name:36} {statistics.median(times):12.2f} us")


if __name__ == "__main__":
    main()
