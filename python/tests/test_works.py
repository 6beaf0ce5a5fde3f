"""Works: waiting with and without a timeout, asyncio, threads, and the end of the interpreter."""

import asyncio
import datetime
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import onesum

SUM = onesum.ReduceOp.SUM


class Gate:
    """An accumulation_fn that waits."""

    def __init__(self):
        self.event = threading.Event()

    def __call__(self, tensors):
        assert self.event.wait(30)
        return np.sum([tensor.numpy() for tensor in tensors], axis=0)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.event.set()


def pair():
    return [([np.ones(2), np.ones(2)], "CPU:0")]


def test_wait_with_a_timeout(gate):
    work = onesum.ReductionToOneDevice(accumulation_fn=gate).batch_reduce_async(SUM, pair())
    assert not work.is_done()
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="goes on"):
        work.wait(timeout=0.2)
    assert 0.15 < time.monotonic() - start < 5
    with pytest.raises(onesum.DeadlineExceededError):
        work.wait(timeout=0)
    gate.event.set()
    work.wait()
    assert work.is_done() and work.results()[0].numpy().tolist() == [2, 2]


def test_wait_for(gate):
    work = onesum.ReductionToOneDevice(accumulation_fn=gate).batch_reduce_async(SUM, pair())
    assert not work.wait_for(0) and not work.wait_for(datetime.timedelta(milliseconds=10))
    gate.event.set()
    assert work.wait_for(30) and work.is_done()

    def fail(tensors):
        raise KeyError("odd")

    failed = onesum.ReductionToOneDevice(accumulation_fn=fail).batch_reduce_async(SUM, pair())
    assert failed.wait_for(30)  # says nothing of how it ended
    with pytest.raises(KeyError):
        failed.wait()


def test_when_done(gate, monkeypatch):
    work = onesum.ReductionToOneDevice(accumulation_fn=gate).batch_reduce_async(SUM, pair())
    called, threads, unraisable = threading.Event(), [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: unraisable.append(args.exc_value))

    def fail():
        raise KeyError("odd")

    def remember():
        threads.append(threading.get_ident())
        called.set()

    work.when_done(fail)
    work.when_done(remember)
    assert not called.is_set()
    gate.event.set()
    assert called.wait(30) and threads[0] != threading.get_ident()
    assert [str(error) for error in unraisable] == ["'odd'"]
    work.when_done(remember)  # at once
    assert threads[1] == threading.get_ident()
    with pytest.raises(TypeError, match="when_done: fn cannot be called"):
        work.when_done(3)


def test_functions_of_works_are_let_go(gate):
    ops = onesum.ReductionToOneDevice(accumulation_fn=gate)

    class Function:
        def __call__(self):
            pass

    function = Function()
    gone = weakref.ref(function)
    work = ops.batch_reduce_async(SUM, pair())
    work.when_done(function)
    del function
    assert gone() is not None
    gate.event.set()
    work.wait()
    for _ in range(100):  # the thread may still be at it
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None


def test_works_run_in_call_order(gate):
    ops = onesum.ReductionToOneDevice(accumulation_fn=gate)
    works = [ops.batch_reduce_async(SUM, pair()) for _ in range(5)]
    gate.event.set()
    works[-1].wait()
    assert all(work.is_done() for work in works)


def test_await(gate):
    ops = onesum.ReductionToOneDevice(accumulation_fn=gate)

    async def main():
        turns = 0

        async def others():
            nonlocal turns
            for _ in range(5):
                await asyncio.sleep(0.01)
                turns += 1
            gate.event.set()

        results, _ = await asyncio.gather(ops.batch_reduce_async(SUM, pair()), others())
        assert turns == 5  # the loop went on meanwhile
        done = ops.batch_reduce_async(SUM, pair())
        done.wait()
        return results, await done  # one that is done already

    for results in asyncio.run(main()):
        assert results[0].numpy().tolist() == [2, 2]


def test_awaiting_costs_no_time_of_the_processor(gate):
    ops = onesum.ReductionToOneDevice(accumulation_fn=gate)
    threading.Timer(0.5, gate.event.set).start()

    async def main():
        await ops.batch_reduce_async(SUM, pair())

    before = time.process_time()
    asyncio.run(main())
    assert time.process_time() - before < 0.2


def test_await_can_be_cancelled(gate):
    work = onesum.ReductionToOneDevice(accumulation_fn=gate).batch_reduce_async(SUM, pair())

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(work, 0.1)

    asyncio.run(main())
    gate.event.set()
    assert work.results()[0].numpy().tolist() == [2, 2]


def test_errors_are_awaited_too():
    def fail(tensors):
        raise KeyError("odd")

    async def main():
        await onesum.ReductionToOneDevice(accumulation_fn=fail).batch_reduce_async(SUM, pair())

    with pytest.raises(KeyError, match="odd"):
        asyncio.run(main())


def test_calls_release_the_gil():
    """Two threads: one is inside a call as long as the other has not run Python code."""
    seen = threading.Event()
    ops = onesum.ReductionToOneDevice(accumulation_fn=lambda t: seen.wait(30) and t[0])
    thread = threading.Thread(target=lambda: ops.reduce(SUM, [np.ones(1), np.ones(1)], "CPU:0"))
    thread.start()
    seen.set()
    thread.join(30)
    assert not thread.is_alive()


def test_many_threads():
    ops = onesum.ReductionToOneDevice()
    wrong = []

    def calls(number):
        for _ in range(200):
            array = np.full(100, float(number))
            if ops.reduce(SUM, [array, array.copy()], "CPU:0").numpy()[0] != 2 * number:
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dropped_works_are_waited_for(gate):
    threading.Timer(0.2, gate.event.set).start()
    ops = onesum.ReductionToOneDevice(accumulation_fn=gate)
    work = ops.batch_reduce_async(SUM, pair())
    start = time.monotonic()
    del work
    assert time.monotonic() - start > 0.1


def test_ctrl_c_leaves_works_to_themselves(run_python):
    """Those that were waited for, and those that were dropped."""
    said = run_python(
        """
        import numpy as np, onesum, os, signal, threading, time
        gate = threading.Event()
        ops = onesum.ReductionToOneDevice(accumulation_fn=lambda t: gate.wait(30) and t[0])

        def start():
            return ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])

        def drop():
            work = start()
            del work
            time.sleep(0.1)

        for call in (lambda: start().wait(), lambda: start().results(), lambda: start().wait_for(30), drop):
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                call()
            except KeyboardInterrupt:
                print("interrupted")
        assert not gate.is_set() and ops.last_call.number == 0
        gate.set()
        start().wait()
        print(ops.last_call.number)
        """
    )
    assert said.split() == ["interrupted"] * 4 + ["5"]


def test_prepared():
    a, b = np.ones(3), np.full(3, 2.0)
    prepared = onesum.ReductionToOneDevice().prepare(SUM, [[a, b]], [[a, b]])
    prepared.run()
    prepared.start().wait()
    assert a.tolist() == b.tolist() == [6, 6, 6]


def test_the_interpreter_ends_with_works_pending(run_python):
    assert "end" in run_python(
        """
        import numpy as np, onesum, threading, time
        ops = onesum.ReductionToOneDevice(accumulation_fn=lambda t: time.sleep(0.3) or t[0])
        works = [ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]) for _ in range(3)]
        print("end")
        """
    )


def test_nothing_leaks(run_python):
    """nanobind says at the end what was left; conftest looks for that."""
    run_python(
        """
        import numpy as np, onesum
        SUM = onesum.ReduceOp.SUM
        cluster = onesum.Cluster.embedded(["/job:worker/task:0", "/job:worker/task:1"], 1)
        ops = onesum.ReductionToOneDevice(accumulation_fn=lambda t: t[0], cluster=cluster)
        value = onesum.PerReplica([np.ones(2)], ["/job:worker/task:1/device:CPU:0"])
        result = ops.reduce(SUM, value, "/job:worker/task:0/device:CPU:0")
        array = result.numpy()
        strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"], onesum.NcclAllReduce())
        kept = strategy.run(lambda replica: replica.merge_call(lambda s, v: s.extended.reduce_to(SUM, v, v), (np.ones(2),)))
        with strategy.scope() as same:
            variable = onesum.Variable("v", np.ones(2))
        prepared = ops.prepare(SUM, [value], [value])
        work = prepared.start()
        try:
            onesum.Device("x:y")
        except ValueError as error:
            caught = error
        """
    )
