"""Collectives, messages and groups of workers that are processes of their own."""

import pytest

START = """
import os, signal, sys, threading, time
import numpy as np
import onesum

SUM = onesum.ReduceOp.SUM
Collective, nothing = onesum.Collective, onesum.PerReplica()
cluster = onesum.Cluster.from_environment()
rank, size = cluster.rank, cluster.size
ops = onesum.AllReduceCrossDeviceOps("auto", cluster=cluster)
"""


def expect(done, word, times):
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(word) == times, done.stdout + done.stderr


def test_collectives_of_three_processes(run_workers):
    done = run_workers(
        START
        + """
def run(call, way):
    if way == "run":
        ops.run(call)
    elif way == "start":
        ops.start(call).wait()
    else:
        ops.prepare(call).run()

for way in ("run", "start", "prepare"):
    own = np.full(rank + 1, float(rank))  # parts of different sizes
    whole = np.zeros(6)
    run(Collective.all_gather([own], [whole]), way)
    assert whole.tolist() == [0, 1, 1, 2, 2, 2], whole
    part = np.zeros(rank + 1)
    run(Collective.reduce_scatter(SUM, [whole * (rank + 1)], [part]), way)
    assert part.tolist() == [6.0 * rank] * (rank + 1), part
    part[:] = 0
    run(Collective.scatter([whole if rank == 1 else nothing], [part], root=1), way)
    assert part.tolist() == own.tolist(), part
    copy = whole + 1 if rank == 2 else np.zeros(6)
    run(Collective.broadcast([copy if rank == 2 else nothing], [nothing if rank == 2 else copy], root=2), way)
    assert copy.tolist() == (whole + 1).tolist()
    into = np.zeros(6)
    run(Collective.all_to_all([np.repeat(float(rank), 6)], [into], splits=[[2, 2, 2]]), way)
    assert into.tolist() == [0, 0, 1, 1, 2, 2]
    into = np.zeros(3 * (rank + 1))
    run(Collective.all_to_all([np.repeat(float(rank), 6)], [into], splits=np.array([[1, 2, 3]])), way)
    assert into.tolist() == np.repeat([0.0, 1, 2], rank + 1).tolist()
    most = np.zeros(2)
    run(Collective.reduce(onesum.ReduceOp.MAX, [np.array([rank, -rank]) * 1.0], [most if rank == 0 else nothing], receiver=0), way)
    assert most.tolist() == ([2, 0] if rank == 0 else [0, 0])
    equal = np.zeros(3)
    run(Collective.all_gather([np.array([float(rank)])], [equal], has_equal_parts=True), way)
    assert equal.tolist() == [0, 1, 2]
print("good", rank)
""",
        workers=3,
    )
    expect(done, "good", 3)


def test_a_broken_promise_of_equal_parts_is_an_error(run_workers):
    done = run_workers(
        START
        + """
try:
    ops.run(Collective.all_gather([np.ones(rank + 1)], [np.zeros(3)], has_equal_parts=True))
except onesum.InvalidArgumentError as error:
    print("refused", error, flush=True)
"""
    )
    assert done.stdout.count("refused") == 2, done.stdout + done.stderr


def test_messages(run_workers):
    done = run_workers(
        START
        + """
messages = onesum.PointToPoint(cluster)
right, left = (rank + 1) % size, (rank - 1) % size
for turn in range(3):  # round the ring
    array = np.empty(1000, np.float32)
    work = messages.start_recv(array, left)
    messages.send(np.full((10, 100), rank + turn, np.float32), right)
    work.wait(timeout=30)
    assert (array == left + turn).all()
first, second = np.zeros(2, int), np.zeros(2, int)
if rank == 0:
    works = [messages.start_send(np.full(2, tag), to=1, tag=tag) for tag in (1, 2)]
    for work in works:
        work.wait()
elif rank == 1:
    messages.recv(second, from_=0, tag=2)  # not in the order of the sends
    messages.recv(first, 0, 1)
    assert first.tolist() == [1, 1] and second.tolist() == [2, 2]
if rank == 2:
    try:
        messages.recv(np.zeros(2), 2)
    except ValueError as error:
        assert "recv from worker 2; expected another one of 0 to 2" in str(error)
cluster.barrier(timeout=30)
print("good", rank)
""",
        workers=3,
    )
    expect(done, "good", 3)


def test_messages_that_do_not_fit_are_an_error_on_both(run_workers):
    done = run_workers(
        START
        + """
messages = onesum.PointToPoint(cluster)
try:
    messages.send(np.ones(3), 1) if rank == 0 else messages.recv(np.ones(4), 0)
except onesum.InvalidArgumentError as error:
    print("refused", error, flush=True)
frozen = np.ones(3)
frozen.flags.writeable = False
try:
    messages.recv(frozen, 1 - rank, tag=1)
except ValueError as error:
    assert "tensor: the array is read-only" in str(error)
try:
    messages.send([1, 2], 1 - rank)
except TypeError as error:
    assert "tensor: list is no array" in str(error)
cluster.barrier()
"""
    )
    expect(done, "refused", 2)


def test_timeouts(run_workers):
    done = run_workers(
        START
        + """
messages = onesum.PointToPoint(cluster)
if rank == 0:
    for wait in (
        lambda: messages.recv(np.ones(3), 1, options=onesum.CommunicationOptions(timeout=0.3)),
        lambda: messages.start_recv(np.ones(3), 1, 5, onesum.CommunicationOptions(timeout=0.3)).wait(),
        lambda: cluster.group([0, 1], "nobody else comes", timeout=0.3),
        lambda: cluster.barrier(timeout=0.3),
    ):
        try:
            wait()
        except onesum.DeadlineExceededError as error:
            assert "task:1" in str(error) or "worker 1" in str(error), error
            print("late", flush=True)
else:
    time.sleep(3)
"""
    )
    assert done.stdout.count("late") == 4, done.stdout + done.stderr


def test_groups(run_workers):
    done = run_workers(
        START
        + """
if rank != 1:
    both = cluster.group([2, 0], "the even ones", timeout=30)
    assert (both.rank, both.size) == (0 if rank == 2 else 1, 2)
    array = np.array([float(rank)])
    onesum.ReductionToOneDevice(cluster=both).reduce_into(SUM, array, array)
    assert array == 2
try:
    cluster.group([0, 0.5], "no ranks")
except TypeError as error:
    assert "ranks[1]: float found; expected a sequence of ranks" in str(error)
assert cluster.group(np.array([rank]), "alone").size == 1
cluster.barrier()
print("good", rank)
""",
        workers=3,
    )
    expect(done, "good", 3)


WAITS = {
    "recv": "messages.recv(np.ones(2), 1)",
    "recv on a way that was used": "messages.recv(np.ones(2), 1, 7)",
    "send": "messages.send(np.ones(2), 1)",
    "work": "messages.start_recv(np.ones(2), 1).wait()",
    "dropped work": "messages.start_recv(np.ones(2), 1); time.sleep(0.1)",
    "behind a work": "work = messages.start_recv(np.ones(2), 1); messages.recv(np.ones(2), 1)",
    "group": "cluster.group([0, 1], 'both')",
    "collective": "ops.run(Collective.all_gather([np.ones(2)], [np.ones(4)]))",
    "started collective": "ops.start(Collective.all_gather([np.ones(2)], [np.ones(4)])).wait()",
    "prepare": "ops.prepare(Collective.all_gather([np.ones(2)], [np.ones(4)]))",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_call_that_waits(run_workers, wait):
    """Worker 0 is interrupted while it waits for worker 1, which comes only if it is not."""
    done = run_workers(
        START
        + f"""
messages = onesum.PointToPoint(cluster)
messages.recv(np.ones(2), 1, 7) if rank == 0 else messages.send(np.ones(2), 0, 7)
flag = __file__ + ".interrupted"
if rank == 0:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        {WAITS[wait]}
    except KeyboardInterrupt:
        open(flag, "w").close()
    cluster.close()
else:
    deadline = time.monotonic() + 15
    while not os.path.exists(flag) and time.monotonic() < deadline:
        time.sleep(0.05)
    print("interrupted" if os.path.exists(flag) else "not interrupted", flush=True)
"""
    )
    assert done.stdout.split("\n")[0] == "interrupted", done.stdout + done.stderr


@pytest.mark.parametrize("tag", [0, 7], ids=["new way", "used way"])
def test_the_interpreter_ends_with_a_message_that_never_comes(run_workers, tag):
    """Worker 0 is done after a while; worker 1 hears of it."""
    done = run_workers(
        START
        + f"""
messages = onesum.PointToPoint(cluster)
if rank == 0:
    messages.recv(np.ones(2), 1, 7)
    work = messages.start_recv(np.ones(2), 1, {tag})
    print("end", flush=True)
else:
    messages.send(np.ones(2), 0, 7)
    try:
        cluster.barrier(timeout=30)
    except onesum.AbortedError as error:
        print("heard:", error, flush=True)
""",
        timeout=60,
    )
    assert "end" in done.stdout and "closed the cluster" in done.stdout, done.stdout + done.stderr
    assert "leaked" not in done.stderr, done.stderr


def test_closing_the_cluster_ends_messages(run_workers):
    """Those of Works, and those of other threads; later ones are refused."""
    done = run_workers(
        START
        + """
messages = onesum.PointToPoint(cluster)
if rank == 0:
    said = []

    def receive():
        try:
            messages.recv(np.ones(2), 1, 1)
        except onesum.AbortedError as error:
            said.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    work = messages.start_recv(np.ones(2), 1)
    assert not work.wait_for(0.3)
    cluster.close()
    thread.join(30)
    for call in (lambda: work.wait(30), lambda: messages.send(np.ones(2), 1, 9)):
        try:
            call()
        except onesum.AbortedError as error:
            said.append(error)
    print("ended", len(said), flush=True)
else:
    time.sleep(2)
"""
    )
    assert "ended 3" in done.stdout, done.stdout + done.stderr
