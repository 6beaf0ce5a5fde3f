#!/usr/bin/env python3
"""What calls from Python cost, against the same calls from C++ (`onesum bench`), in turns.

    PYTHONPATH=build/python-package build/python/bin/python bench/python/calls.py [--rounds 5]

On 2 devices: small calls, and batch_reduce of the ResNet-50 gradients (bench/shapes/resnet50.txt) from NumPy arrays
with results of the library's. Prints medians in microseconds, and the medians over the rounds of the difference and of
the ratio to the C++ case beside it. Of the last one also what the library itself took of the call (`last_call`): the
rest is Python, however busy the machine is.
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
    command = [TOOL, "bench", "--devices", "2", "--rounds", "1", "--no-check", "--json", *options]
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


def reductions():
    """4 bytes. (call, C++ case, Python's time, C++'s time) each."""
    ops = onesum.ReductionToOneDevice()
    arrays = [np.ones(1, np.float32), np.zeros(1, np.float32)]
    value = onesum.PerReplica(arrays)
    prepared = ops.prepare(SUM, [value], [value])
    theirs = cpp("--sizes", "4")
    for name, case, call in (
        ("prepared.run()", "inproc_in", prepared.run),
        ("reduce_into, values made before", "inproc_in_plain", lambda: ops.reduce_into(SUM, value, value)),
        ("reduce_into, NumPy arrays", "inproc_in_plain", lambda: ops.reduce_into(SUM, arrays, arrays)),
        ("reduce, NumPy arrays, new result", "inproc_out_plain", lambda: ops.reduce(SUM, arrays, "CPU:0")),
    ):
        yield name, case, median_us(call, 200, 500), theirs[case]


def collectives():
    """8 bytes from two devices to each."""
    ops = onesum.ReductionToOneDevice()
    arrays = [np.ones(1, np.float32), np.zeros(1, np.float32)]
    results = [np.empty(2, np.float32), np.empty(2, np.float32)]
    made = onesum.Collective.all_gather([arrays], [results])
    case = "inproc_out_plain"
    theirs = cpp("--op", "all_gather", "--sizes", "8")[case]
    for name, call in (
        ("run, Collective made before", lambda: ops.run(made)),
        ("run, NumPy arrays", lambda: ops.run(onesum.Collective.all_gather([arrays], [results]))),
    ):
        yield name, "all_gather " + case, median_us(call, 200, 500), theirs


def gradients():
    shapes = [tuple(map(int, line.split()[1:])) for line in SHAPES.read_text().splitlines() if line.strip()]
    ops = onesum.ReductionToOneDevice()
    batch = [[np.ones(shape, np.float32) for _ in range(2)] for shape in shapes]
    inside = []

    def call():
        pairs = []
        for arrays in batch:
            value = onesum.PerReplica(arrays)
            pairs.append((value, value))
        results = ops.batch_reduce(SUM, pairs)
        inside.append(ops.last_call.time.total_seconds() * 1e6)
        return results

    theirs = cpp("--shapes", str(SHAPES), "--budget", "1")["inproc_fresh"]
    ours = median_us(call, 25, 1)
    yield "batch_reduce, ResNet-50, NumPy arrays", "inproc_fresh", ours, theirs
    yield "batch_reduce, ResNet-50, NumPy arrays", "of it the library", ours, statistics.median(inside[1:])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    found = {}
    for _ in range(arguments.parse_args().rounds):
        for measure in (reductions, collectives, gradients):
            for name, case, ours, theirs in measure():
                found.setdefault((name, case), []).append((ours, theirs))
    print(f"{'Python':38} {'us':>10}   {'C++':27} {'us':>10} {'difference':>11} {'ratio':>6}")
    for (name, case), times in found.items():
        ours, theirs = (statistics.median(column) for column in zip(*times))
        difference = statistics.median(one - other for one, other in times)
        ratio = statistics.median(one / other for one, other in times)
        print(f"{name:38} {ours:10.2f}   {case:27} {theirs:10.2f} {difference:11.2f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
