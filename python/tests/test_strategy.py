"""MirroredStrategy: runs, scopes, variables, replicas that fail, Ctrl-C."""

import threading

import numpy as np
import pytest

import onesum

SUM, MEAN = onesum.ReduceOp.SUM, onesum.ReduceOp.MEAN


@pytest.fixture
def strategy():
    return onesum.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])


def test_run(strategy):
    threads = set()

    def replica_fn(replica):
        threads.add(threading.get_ident())
        assert replica.strategy is strategy and replica.num_replicas == 3
        assert replica.device == strategy.devices[replica.replica_id]
        return np.full(2, float(replica.replica_id))

    value = strategy.run(replica_fn)
    assert len(threads) == 3 and value.devices == strategy.devices
    assert strategy.reduce(MEAN, value).numpy().tolist() == [1, 1]
    assert strategy.run(lambda replica: None) is None
    assert strategy.num_replicas == 3


def test_all_reduce(strategy):
    def replica_fn(replica):
        total = replica.all_reduce(SUM, np.full(2, 1.0))
        both = replica.all_reduce(MEAN, [np.full(2, float(replica.replica_id)), np.ones(1)])
        rows = replica.all_reduce(
            SUM, onesum.IndexedSlices(np.ones((1, 2)), np.array([replica.replica_id]), device=replica.device)
        )
        assert total.numpy().tolist() == [3, 3] and both[0].numpy().tolist() == [1, 1]
        assert rows.indices.numpy().tolist() == [0, 1, 2]

    strategy.run(replica_fn)


def test_merge_call(strategy):
    def merge(same, value, other):
        assert same is strategy and len(value) == 3
        return [same.extended.reduce_to(SUM, value, value), other]

    def replica_fn(replica):
        total, own = replica.merge_call(merge, (np.ones(1), np.full(1, float(replica.replica_id))))
        assert total.numpy().tolist() == [3] and own.numpy().tolist() == [replica.replica_id]
        assert replica.merge_call(lambda s: None) is None
        return replica.merge_call(lambda s, v: v, (np.ones(1),))

    strategy.run(replica_fn)


def test_variables(strategy):
    with strategy.scope():
        weights = onesum.Variable("weights", np.zeros(2))
    assert weights.is_mirrored() and weights.devices == strategy.devices
    assert not onesum.Variable("alone", np.zeros(2)).is_mirrored()

    def replica_fn(replica):
        weights.assign(replica.all_reduce(SUM, np.full(2, 2.0)))
        return weights.value()

    assert strategy.run(replica_fn).tensor(2).numpy().tolist() == [6, 6]
    weights.assign(np.ones(2))
    assert [component.numpy().tolist() for component in weights.components] == [[1, 1]] * 3
    assert strategy.extended.reduce_to(SUM, weights, weights).tensor(1).numpy().tolist() == [3, 3]


def test_the_lowest_error_is_raised(strategy):
    def replica_fn(replica):
        if replica.replica_id == 1:
            raise KeyError("one")
        replica.all_reduce(SUM, np.ones(1))

    with pytest.raises(KeyError, match="one"):
        strategy.run(replica_fn)
    assert strategy.run(lambda replica: replica.all_reduce(SUM, np.ones(1))).tensor().numpy() == 3


def test_errors_in_merge_call_reach_all(strategy):
    caught = []

    def merge(strategy):
        raise KeyError("merge")

    def replica_fn(replica):
        try:
            replica.merge_call(merge)
        except KeyError as error:
            caught.append(str(error))

    strategy.run(replica_fn)
    assert caught == ["'merge'"] * 3


def test_what_replicas_return_is_checked(strategy):
    with pytest.raises(onesum.InvalidArgumentError, match="replica 1 returned nothing"):
        strategy.run(lambda replica: None if replica.replica_id == 1 else np.ones(1))
    with pytest.raises(onesum.InvalidArgumentError, match="replica 0"):
        strategy.run(lambda replica: onesum.Tensor(np.ones(1), "CPU:9"))
    with pytest.raises(TypeError, match="what a replica returned: float is no array"):
        strategy.run(lambda replica: 1.5)


def test_contexts_end_with_their_replica(strategy):
    kept = []
    strategy.run(lambda replica: kept.append(replica))
    with pytest.raises(onesum.InvalidArgumentError, match="after its replica had returned"):
        kept[0].all_reduce(SUM, np.ones(1))


def test_cross_replica_calls_are_refused_in_replicas(strategy):
    with pytest.raises(onesum.InvalidArgumentError):
        strategy.run(lambda replica: strategy.reduce(SUM, np.ones(1)).tensor())


def test_objects_are_shared():
    ops = onesum.NcclAllReduce()
    first, second = (onesum.MirroredStrategy(["CPU:0", "CPU:1"], ops) for _ in range(2))
    assert first.cross_device_ops is ops and second.cross_device_ops is ops
    del first
    assert second.reduce(SUM, [np.ones(1), np.ones(1)]).numpy() == 2
    assert isinstance(onesum.MirroredStrategy(["CPU:0"]).cross_device_ops, onesum.ReductionToOneDevice)


def test_ctrl_c_ends_a_run(run_python):
    said = run_python(
        """
        import onesum, os, signal, threading, time
        strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        def endless(replica):
            if replica.replica_id == 1:
                replica.merge_call(lambda strategy: None)  # waits for the other
            while True:
                time.sleep(0.01)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            strategy.run(endless)
        except KeyboardInterrupt:
            print("interrupted")
        print(strategy.run(lambda replica: None))
        """
    )
    assert said.split() == ["interrupted", "None"]
