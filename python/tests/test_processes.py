"""Workers as processes of their own, started by the packaged tool."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import TOOL

START = """
import os, signal, sys, threading, time
import numpy as np
import onesum

SUM, MEAN = onesum.ReduceOp.SUM, onesum.ReduceOp.MEAN
cluster = onesum.Cluster.from_environment()
rank, size = cluster.rank, cluster.size
ops = onesum.AllReduceCrossDeviceOps("auto", cluster=cluster)


def reduce(array):
    return ops.reduce(SUM, onesum.PerReplica([array]), "CPU:0")
"""


def test_reductions_of_two_processes(run_workers):
    done = run_workers(
        START
        + """
assert size == 2 and len(cluster.workers) == 2
result = reduce(np.arange(5.0) + rank)
assert result.numpy().tolist() == [1, 3, 5, 7, 9]
assert ops.broadcast(np.array([rank]), "CPU:0", root=1).numpy().tolist() == [1]
assert ops.gather(np.array([rank]), "CPU:0", 0).numpy().tolist() == [0, 1]
a = np.full(3, float(rank))
ops.reduce_into(MEAN, a, a)
assert a.tolist() == [0.5] * 3
work = ops.batch_reduce_async(SUM, [(np.ones(4), "CPU:0")] * 3)
assert [r.numpy().tolist() for r in work.results()] == [[2.0] * 4] * 3
elsewhere = ops.reduce(SUM, np.ones(2), "/task:1/device:CPU:0")
assert len(elsewhere) == rank
cluster.barrier()
assert cluster.split([rank]).size == 1 and cluster.duplicate().size == 2
assert cluster.completed_calls > 0 and ops.last_call.number > 0
print("good", rank)
"""
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "good 0", "good 1"]


def test_multi_worker_all_reduce_takes_the_environment(run_workers):
    done = run_workers(
        START
        + """
workers = ["/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"]
ops = onesum.MultiWorkerAllReduce(workers, 2, ("pscpu/pscpu", 2, -1))
value = onesum.PerReplica([np.full(7, 1.0 + rank), np.full(7, 10.0)])
result = ops.reduce(SUM, value, value)
assert [t.numpy().tolist() for t in result] == [[36.0] * 7] * 2
print("good")
""",
        workers=3,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("good") == 3


def test_different_shapes_are_an_error_on_all(run_workers):
    done = run_workers(
        START
        + """
try:
    reduce(np.ones(3 + rank))
except onesum.InvalidArgumentError as error:
    print("refused", error)
"""
    )
    assert done.stdout.count("refused") == 2, done.stderr
    assert "[3]" in done.stdout and "[4]" in done.stdout


def test_a_killed_worker_is_an_exception_of_the_others(run_workers):
    start = time.monotonic()
    done = run_workers(
        START
        + """
try:
    reduce(np.ones(2))  # which may fail already: worker 1 may have done its part and be gone
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        reduce(np.ones(2))
except onesum.Error as error:
    assert isinstance(error, ConnectionError)
    print(type(error).__name__, error, flush=True)
    works = [cluster.shrink(timeout=5)]
    print("left", works[0].size, flush=True)
""",
        workers=3,
    )
    assert done.stdout.count("AbortedError") == 2, done.stdout + done.stderr
    assert "task:1" in done.stdout or "worker 1" in done.stdout
    assert done.stdout.count("left 2") == 2
    assert time.monotonic() - start < 30


WAITS = {
    "reduce": "reduce(np.ones(2))",
    "first call": "onesum.ReductionToOneDevice(cluster=cluster).reduce(SUM, np.ones((2, 7)), 'CPU:0')",
    "barrier": "cluster.barrier()",
    "work": "ops.batch_reduce_async(SUM, [(np.ones(2), 'CPU:0')]).wait()",
    "behind a work": "work = ops.batch_reduce_async(SUM, [(np.ones(2), 'CPU:0')]); reduce(np.ones(2))",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_call_that_waits(run_workers, wait):
    """Worker 1 never comes; worker 0 is interrupted. Worker 1's next call says why."""
    start = time.monotonic()
    done = run_workers(
        START
        + f"""
reduce(np.ones(2))
if rank == 0:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        {WAITS[wait]}
    except KeyboardInterrupt:
        print("interrupted", 0.3 < time.monotonic() - start < 3, flush=True)
    cluster.close()
else:
    time.sleep(2)
    try:
        reduce(np.ones(2))
    except onesum.Error as error:
        print("heard:", error, flush=True)
"""
    )
    assert "interrupted True" in done.stdout, done.stdout + done.stderr
    assert time.monotonic() - start < 20


def test_ctrl_c_while_workers_meet(tmp_path):
    file = tmp_path / "worker.py"
    file.write_text("import onesum\nonesum.Cluster.from_environment()\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {"ONESUM_RANK": "0", "ONESUM_SIZE": "2", "ONESUM_ADDRESS": address}
    worker = subprocess.Popen(
        [sys.executable, file], env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.5)
    worker.send_signal(signal.SIGINT)
    said = worker.communicate(timeout=10)[1]
    assert "KeyboardInterrupt" in said, said


def test_the_interpreter_ends_with_works_that_will_never_be_done(run_workers):
    start = time.monotonic()
    done = run_workers(
        START
        + """
reduce(np.ones(2))
if rank == 0:
    work = ops.batch_reduce_async(SUM, [(np.ones(2), "CPU:0")])
    print("end", flush=True)
else:
    time.sleep(8)
""",
        timeout=60,
    )
    assert "end" in done.stdout
    assert "leaked" not in done.stderr, done.stderr
    assert 4 < time.monotonic() - start < 20


def test_the_tool_is_in_the_package():
    said = subprocess.run([sys.executable, "-m", "onesum", "--help"], capture_output=True, text=True)
    assert said.returncode == 0 and "run" in said.stdout and "bench" in said.stdout
    assert pathlib.Path(TOOL).exists()
