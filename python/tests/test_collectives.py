"""Collectives in one process, against NumPy, to the bit: all kinds, types, uneven parts, in place, errors."""

import asyncio
import gc
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operations import combined, is_taken
from random_arrays import DTYPES, random_array, same_bits
from reference import reduced

import onesum

Collective, Kind, Op = onesum.Collective, onesum.CollectiveKind, onesum.ReduceOp
ALGORITHMS = ["one_device", "auto", "xring", "hierarchical_copy"]

seeds = st.integers(0, 2**32 - 1)
counts = st.lists(st.integers(0, 40), min_size=1, max_size=5)


def ops_of(alg):
    return onesum.ReductionToOneDevice() if alg == "one_device" else onesum.AllReduceCrossDeviceOps(alg)


def apart(array, sizes):
    """Consecutive parts of an array."""
    return np.split(array, np.cumsum(sizes)[:-1])


def blank(dtype, sizes):
    return [np.zeros(size, dtype) for size in sizes]


def run(ops, call, way):
    """The same call by each of the ways that there are."""
    if way == "run":
        ops.run(call)
    elif way == "start":
        assert ops.start(call).results() == []
    else:
        ops.prepare(call).run()


ways = st.sampled_from(["run", "start", "prepare"])
dtypes = st.sampled_from(DTYPES)
algorithms = st.sampled_from(ALGORITHMS)


@given(seed=seeds, dtype=dtypes, op=st.sampled_from(list(Op)), alg=st.sampled_from(["one_device", "auto"]), replicas=st.integers(1, 5), elements=st.integers(0, 300), way=ways)
def test_reduce(seed, dtype, op, alg, replicas, elements, way):
    if not is_taken(op, dtype):
        op = Op.SUM
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, dtype, elements) for _ in range(replicas)]
    plain = op in (Op.SUM, Op.MEAN)
    expected = reduced(arrays, op is Op.MEAN) if plain else combined(arrays, op)
    results = [np.zeros(elements, expected.dtype) for _ in range(2)]
    run(ops_of(alg), Collective.reduce(op, [arrays], [results]), way)
    for result in results:
        same_bits(result, expected)


@given(seed=seeds, dtype=dtypes, alg=st.sampled_from(["one_device", "auto"]), replicas=st.integers(1, 5), sizes=counts, way=ways)
def test_reduce_scatter(seed, dtype, alg, replicas, sizes, way):
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, dtype, sum(sizes)) for _ in range(replicas)]
    results = blank(dtype, sizes)
    run(ops_of(alg), Collective.reduce_scatter(Op.SUM, [arrays], [results]), way)
    for result, expected in zip(results, apart(reduced(arrays, False), sizes), strict=True):
        same_bits(result, expected)


@given(seed=seeds, dtype=dtypes, alg=algorithms, sizes=counts, copies=st.integers(1, 4), way=ways)
def test_all_gather(seed, dtype, alg, sizes, copies, way):
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, dtype, size) for size in sizes]
    results = blank(dtype, [sum(sizes)] * copies)
    run(ops_of(alg), Collective.all_gather([arrays], [results]), way)
    for result in results:
        same_bits(result, np.concatenate(arrays))


@given(seed=seeds, dtype=dtypes, alg=algorithms, elements=st.integers(0, 300), copies=st.integers(1, 5), way=ways)
def test_broadcast(seed, dtype, alg, elements, copies, way):
    array = random_array(np.random.default_rng(seed), dtype, elements)
    results = blank(dtype, [elements] * copies)
    run(ops_of(alg), Collective.broadcast([array], [results]), way)
    for result in results:
        same_bits(result, array)


@given(seed=seeds, dtype=dtypes, alg=algorithms, sizes=counts, way=ways)
def test_scatter(seed, dtype, alg, sizes, way):
    array = random_array(np.random.default_rng(seed), dtype, sum(sizes))
    results = blank(dtype, sizes)
    run(ops_of(alg), Collective.scatter([array], [results]), way)
    for result, expected in zip(results, apart(array, sizes), strict=True):
        same_bits(result, expected)


@given(seed=seeds, dtype=dtypes, alg=algorithms, splits=st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(st.integers(0, 20), min_size=n, max_size=n), min_size=n, max_size=n)), way=ways)
def test_all_to_all(seed, dtype, alg, splits, way):
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, dtype, sum(split)) for split in splits]
    parts = [apart(array, split) for array, split in zip(arrays, splits)]
    expected = [np.concatenate(column) for column in zip(*parts)]
    results = blank(dtype, [len(one) for one in expected])
    call = Collective.all_to_all([arrays], [results], splits)
    assert call.splits == splits
    run(ops_of(alg), call, way)
    for result, one in zip(results, expected, strict=True):
        same_bits(result, one)


@given(seed=seeds, sizes=st.lists(st.integers(1, 30), min_size=2, max_size=4))
def test_many_tensors_at_once(seed, sizes):
    """Of several types and sizes, each with two replicas."""
    rng = np.random.default_rng(seed)
    batch = [[random_array(rng, DTYPES[i % len(DTYPES)], size) for _ in range(2)] for i, size in enumerate(sizes)]
    results = [[np.zeros(2 * size, arrays[0].dtype)] for size, arrays in zip(sizes, batch)]
    onesum.ReductionToOneDevice().run(Collective.all_gather(batch, results))
    for (result,), arrays in zip(results, batch):
        same_bits(result, np.concatenate(arrays))


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_in_place(alg):
    ops = ops_of(alg)
    a, b = np.arange(4.0), np.arange(4.0) + 10
    ops.run(Collective.reduce_scatter(Op.SUM, [[a, b]], [[a[:2], b[2:]]]))
    assert a.tolist() == [10, 12, 2, 3] and b.tolist() == [10, 11, 14, 16]
    whole, other = np.arange(4.0), np.arange(4.0) + 10
    ops.run(Collective.all_gather([[whole[:2], other[2:]]], [[whole, other]]))
    assert whole.tolist() == other.tolist() == [0, 1, 12, 13]
    ops.run(Collective.broadcast([whole], [[whole, other]]))
    ops.run(Collective.reduce(Op.MAX, [[whole, other]], [[whole, other]]))
    assert whole.tolist() == other.tolist() == [0, 1, 12, 13]


def test_equal_parts_of_all_to_all():
    arrays, results = [np.arange(4), np.arange(4) + 10], [np.zeros(4, int), np.zeros(4, int)]
    onesum.ReductionToOneDevice().run(Collective.all_to_all([arrays], [results], has_equal_parts=True))
    assert [result.tolist() for result in results] == [[0, 1, 10, 11], [2, 3, 12, 13]]


def test_workers_in_this_process():
    """Replicas and results count over all workers in rank order, and shapes need not fit."""
    workers = [f"/job:worker/task:{task}" for task in range(3)]
    places = [f"{worker}/device:CPU:0" for worker in workers]
    ops = onesum.AllReduceCrossDeviceOps("auto", cluster=onesum.Cluster.embedded(workers, 1))
    arrays = [np.full((1, 2), task) for task in range(3)]
    results = [np.zeros((2, 3), int) for _ in workers]
    values, into = onesum.PerReplica(arrays, places), onesum.PerReplica(results, places)
    ops.run(Collective.all_gather([values], [into]))
    assert [result.ravel().tolist() for result in results] == [[0, 0, 1, 1, 2, 2]] * 3


def test_fields():
    a, b = np.zeros(2), np.zeros(2)
    call = Collective.reduce(Op.MIN, [[a, b]], [a], receiver=0)
    assert (call.kind, call.op, call.root, call.receiver) == (Kind.REDUCE, Op.MIN, 0, 0)
    assert [len(value) for value in call.values] == [2] and call.results[0].tensor().memory == a.ctypes.data
    assert call.splits == [] and not call.has_equal_parts
    for make in (Collective.all_gather, Collective.scatter, Collective.all_to_all):
        assert make([[a, b]], [[a, b]], has_equal_parts=True).has_equal_parts
    assert Collective.scatter([a], [[b]], 2).root == Collective.broadcast([a], [b], root=2).root == 2
    assert repr(call) == "Collective.reduce(1 tensors)"
    assert [onesum.parse_collective_kind(onesum.to_string(kind)) for kind in Kind] == list(Kind)
    with pytest.raises(AttributeError):
        call.root = 1


def test_nothing_is_a_value():
    assert len(onesum.PerReplica()) == len(onesum.PerReplica([])) == len(onesum.PerReplica((), [])) == 0
    call = Collective.reduce(Op.SUM, [[np.ones(1), np.ones(1)]], [onesum.PerReplica()])
    assert len(call.results[0]) == 0


@pytest.mark.parametrize("kind", Kind, ids=onesum.to_string)
def test_plans(kind):
    """Those of memory and those of specs, for every kind."""
    places = ["CPU:0", "CPU:1", "CPU:2"]
    ops = onesum.AllReduceCrossDeviceOps("auto")
    spec = onesum.CollectiveSpec(kind, onesum.ReduceSpec("f32", 7, places, places), op=Op.MAX)
    assert (spec.kind, spec.op, spec.root, spec.tensor.shape) == (kind, Op.MAX, 0, (7,))
    plan = ops.plan(spec)
    plan.verify()
    assert len(plan.devices) == 3 and sum(plan.pack_elements) in (7, 21)
    assert ops.explain(spec).startswith("1 tensor in")
    options = onesum.CommunicationOptions(bytes_per_pack=8)
    assert ops.plan(spec, options).to_text()


def test_plans_of_memory():
    ops = onesum.ReductionToOneDevice()
    call = Collective.all_gather([[np.ones(2), np.ones(3)]], [np.empty(5)])
    ops.plan(call).verify()
    assert ops.plan(call).pack_elements == [2, 3] and ops.explain(call).startswith("1 tensor")


def test_reports_and_await():
    ops = onesum.ReductionToOneDevice()
    a, b = np.ones(2), np.zeros(2)

    async def main():
        return await ops.start(Collective.broadcast([a], [b]))

    assert asyncio.run(main()) == [] and b.tolist() == [1, 1]
    assert ops.last_call.number == 1 and ops.last_call.tensors == 1


ONE = np.ones(4)


@pytest.mark.parametrize(
    "error, words, make",
    [
        (ValueError, "2 values and 1 results; expected a result for every value", lambda: Collective.all_gather([ONE, ONE], [np.empty(8)])),
        (ValueError, "root 3", lambda: Collective.broadcast([ONE], [np.empty(4)], root=3)),
        (ValueError, "receiver 5", lambda: Collective.all_gather([ONE], [np.empty(4)], receiver=5)),
        (ValueError, "7", lambda: Collective.all_gather([[ONE, ONE]], [np.empty(7)])),
        (ValueError, "float32", lambda: Collective.all_gather([[ONE, ONE]], [np.empty(8, np.float32)])),
        (ValueError, "2 splits for 1 replicas", lambda: Collective.all_to_all([ONE], [np.empty(4)], [[4], [4]])),
        (ValueError, r"splits\[0\]\[0\]: -1 found; expected", lambda: Collective.all_to_all([ONE], [np.empty(4)], [[-1]])),
        (TypeError, r"splits\[0\]: int found; expected for each replica of this process", lambda: Collective.all_to_all([ONE], [np.empty(4)], [4])),
        (TypeError, r"splits\[0\]\[0\]: float found; expected numbers of elements", lambda: Collective.all_to_all([ONE], [np.empty(4)], [[4.0]])),
        (TypeError, r"values: ndarray found; expected a list with a value for each tensor, such as \[value\]", lambda: Collective.all_gather(ONE, [np.empty(4)])),
        (TypeError, "values: int found; expected a list with a value for each tensor", lambda: Collective.all_gather(3, [np.empty(4)])),
        (TypeError, "results: PerReplica found; expected a list", lambda: Collective.all_gather([ONE], onesum.PerReplica([ONE, ONE]))),
        (TypeError, "missing|incompatible function arguments", lambda: Collective.all_gather([ONE])),
        (TypeError, "incompatible function arguments", lambda: Collective.reduce("sum", [ONE], [np.empty(4)])),
        (ValueError, "share memory; a result may only lie exactly where", lambda: Collective.all_gather([[ONE, ONE]], [[np.concatenate([ONE, ONE])] * 2])),
    ],
)
def test_mistakes(error, words, make):
    with pytest.raises(error, match=words):
        onesum.ReductionToOneDevice().run(make())


def test_read_only_arrays_are_inputs_only():
    frozen = np.ones(2)
    frozen.flags.writeable = False
    result = np.zeros(4)
    onesum.ReductionToOneDevice().run(Collective.all_gather([[frozen, frozen]], [result]))
    assert result.tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"results\[0\]: the array is read-only"):
        Collective.broadcast([np.zeros(2)], [frozen])


def test_references_are_stable():
    ops = onesum.ReductionToOneDevice()
    arrays, results = [np.ones(2), np.ones(3)], [np.empty(5), np.empty(5)]
    watched = [*arrays, *results, ops]

    def calls():
        call = Collective.all_gather([arrays], [results])
        ops.run(call)
        ops.start(call).wait()
        ops.prepare(call).run()
        ops.plan(call)
        assert len(call.values) == len(call.results) == 1
        with pytest.raises(ValueError):
            ops.run(Collective.all_gather([arrays], [results[0][:4]]))

    for _ in range(10):
        calls()
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    objects = len(gc.get_objects())
    for _ in range(300):
        calls()
    gc.collect()
    assert [sys.getrefcount(thing) for thing in watched] == before
    assert abs(len(gc.get_objects()) - objects) < 50


def test_a_call_keeps_its_arrays():
    result = np.zeros(2)
    call = Collective.broadcast([np.full(2, 5.0)], [result])
    gc.collect()
    onesum.ReductionToOneDevice().run(call)
    assert result.tolist() == [5, 5]
