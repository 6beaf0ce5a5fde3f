"""Reductions against NumPy, to the bit: random values, shapes, types, devices, specs, packs and destinations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onesum
from operations import combined, is_taken
from random_arrays import DTYPES, random_array, same_bits
from reference import PlanReader, reduced

SUM, MEAN = onesum.ReduceOp.SUM, onesum.ReduceOp.MEAN
BOOL = np.dtype(bool)
# Algorithms whose sums are canonical on every layout, inside a worker and across workers.
CANONICAL = ["auto", "nccl", "hierarchical_copy", "rechd", "direct", "pscpu", "psgpu", "pscpu/pscpu", "nccl/rechd"]

shapes = st.lists(st.integers(0, 9), max_size=3).map(tuple) | st.integers(0, 3000).map(lambda n: (n,))
seeds = st.integers(0, 2**32 - 1)


@given(
    seed=seeds,
    dtypes=st.lists(st.tuples(st.sampled_from(DTYPES), shapes), min_size=1, max_size=4),
    replicas=st.integers(1, 8),
    is_mean=st.booleans(),
    alg=st.sampled_from(["one_device"] + CANONICAL[:3]),
    packs=st.integers(0, 3),
    small=st.sampled_from([0, 64, 4096]),
    everywhere=st.booleans(),
    place=st.integers(0, 9),
)
def test_local_reductions(seed, dtypes, replicas, is_mean, alg, packs, small, everywhere, place):
    rng = np.random.default_rng(seed)
    if alg == "one_device":
        ops = onesum.ReductionToOneDevice(reduce_to_device=None if place % 2 else "CPU:0")
    else:
        ops = onesum.AllReduceCrossDeviceOps(alg, packs, small, 3)
    batch = [[random_array(rng, *one) for _ in range(replicas)] for one in dtypes]
    before = [[array.copy() for array in arrays] for arrays in batch]
    values = [onesum.PerReplica(arrays) for arrays in batch]
    op = MEAN if is_mean else SUM
    pairs = [(value, value if everywhere else f"CPU:{place}") for value in values]
    results = ops.batch_reduce(op, pairs)
    for result, arrays, copies in zip(results, batch, before):
        expected = reduced(copies, is_mean)
        assert len(result) == (replicas if everywhere else 1)
        for component in result:
            same_bits(component.numpy(), expected)
        for array, copy in zip(arrays, copies):
            same_bits(array, copy)  # inputs are never written
    assert all(ops.plan(op, [pair]).order == "canonical" for pair in pairs)


@given(
    seed=seeds,
    dtype=st.sampled_from(DTYPES),
    shape=shapes,
    workers=st.integers(1, 4),
    devices=st.integers(1, 3),
    spec=st.sampled_from(CANONICAL),
    shards=st.integers(1, 3),
    limit=st.none() | st.integers(0, 4096),
    packs=st.integers(0, 2),
    is_mean=st.booleans(),
)
def test_workers_in_this_process(seed, dtype, shape, workers, devices, spec, shards, limit, packs, is_mean):
    rng = np.random.default_rng(seed)
    names = [f"/job:worker/task:{task}" for task in range(workers)]
    specs = [(spec, shards, -1)] if limit is None else [("pscpu", 1, limit), (spec, shards, -1)]
    ops = onesum.MultiWorkerAllReduce(names, devices, specs, packs)
    places = [f"{name}/device:CPU:{index}" for name in names for index in range(devices)]
    arrays = [random_array(rng, dtype, shape) for _ in places]
    value = onesum.PerReplica(arrays, places)
    op = MEAN if is_mean else SUM
    result = ops.reduce(op, value, value)
    assert [str(device) for device in result.devices] == [
        str(onesum.Device(place).canonical()) for place in places
    ]
    for component in result:
        same_bits(component.numpy(), reduced(arrays, is_mean))


@given(
    seed=seeds,
    dtype=st.sampled_from([np.dtype("float32"), np.dtype("float64")]),
    elements=st.integers(1, 400),
    workers=st.integers(1, 5),
    devices=st.integers(1, 3),
    spec=st.sampled_from(["xring", "nccl/xring", "pscpu/pscpu", "rechd", "direct", "nccl/rechd", "pscpu"]),
    shards=st.integers(1, 3),
    is_mean=st.booleans(),
)
def test_order_of_the_plan(seed, dtype, elements, workers, devices, spec, shards, is_mean):
    """Whatever order the plan names, the ring's too: the plan's text, run by NumPy, has the same bits."""
    rng = np.random.default_rng(seed)
    names = [f"/job:worker/task:{task}" for task in range(workers)]
    ops = onesum.MultiWorkerAllReduce(names, devices, (spec, shards, -1))
    places = [f"{name}/device:CPU:{index}" for name in names for index in range(devices)]
    arrays = [random_array(rng, dtype, (elements,)) for _ in places]
    value = onesum.PerReplica(arrays, places)
    op = MEAN if is_mean else SUM
    plan = ops.plan(op, [(value, value)])
    results = PlanReader(plan.to_text(), arrays).run()
    if plan.order == "canonical":
        same_bits(results[0], reduced(arrays, is_mean))
    for component, expected in zip(ops.reduce(op, value, value), results, strict=True):
        same_bits(component.numpy(), expected)


def test_a_ring_has_another_order():
    """The test above tells orders apart."""
    rng = np.random.default_rng(1)
    names = [f"/job:worker/task:{task}" for task in range(5)]
    arrays = [random_array(rng, np.dtype("float32"), (400,)) for _ in names]
    value = onesum.PerReplica(arrays, [f"{name}/device:CPU:0" for name in names])
    ops = onesum.MultiWorkerAllReduce(names, 1, "xring")
    assert ops.plan(SUM, [(value, value)]).order == "ring"
    found = ops.reduce(SUM, value, value).tensor(0).numpy()
    assert found.tobytes() != reduced(arrays, False).tobytes()
    np.testing.assert_allclose(found, reduced(arrays, False), rtol=1e-4, atol=1e-4)


OTHERS = [op for op in onesum.ReduceOp if op not in (SUM, MEAN)]


@given(
    seed=seeds,
    choice=st.sampled_from([(op, dtype) for op in OTHERS for dtype in DTYPES + [BOOL] if is_taken(op, dtype)]),
    shape=shapes,
    replicas=st.integers(1, 6),
    alg=st.sampled_from(["one_device"] + CANONICAL[:3]),
    has_specials=st.booleans(),
)
def test_other_operations(seed, choice, shape, replicas, alg, has_specials):
    op, dtype = choice
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, dtype, shape) for _ in range(replicas)]
    if has_specials and dtype.kind not in "biuc":
        for array in arrays:  # among them zeros of both signs
            array[...] = np.where(rng.random(shape) < 0.5, rng.choice(np.array([0.0, -0.0, np.nan]), shape), array)
    ops = onesum.ReductionToOneDevice() if alg == "one_device" else onesum.AllReduceCrossDeviceOps(alg)
    value = onesum.PerReplica(arrays)
    assert onesum.result_dtype(op, dtype).numpy == dtype
    for component in ops.reduce(op, value, value):
        same_bits(component.numpy(), combined(arrays, op))


@pytest.mark.parametrize("op", onesum.ReduceOp, ids=str)
def test_operations_refuse_types_that_they_do_not_take(op):
    ops = onesum.ReductionToOneDevice()
    for dtype in DTYPES + [BOOL]:
        if is_taken(op, dtype):
            ops.reduce(op, [np.ones(2, dtype), np.ones(2, dtype)], "CPU:0")
        else:
            with pytest.raises(onesum.InvalidArgumentError, match=onesum.to_string(onesum.Tensor(np.ones(2, dtype)).dtype)):
                ops.reduce(op, [np.ones(2, dtype)], "CPU:0")


@given(seed=seeds, dtype=st.sampled_from(DTYPES), replicas=st.integers(1, 5), rest=st.integers(0, 4), axis=st.integers(0, 1))
def test_gather(seed, dtype, replicas, rest, axis):
    rng = np.random.default_rng(seed)
    extents = [int(rng.integers(0, 5)) for _ in range(replicas)]
    arrays = [random_array(rng, dtype, (n, rest) if axis == 0 else (rest, n)) for n in extents]
    result = onesum.ReductionToOneDevice().gather(arrays, "CPU:0", axis)
    same_bits(result.numpy(), np.concatenate(arrays, axis))


@given(seed=seeds, dtype=st.sampled_from(DTYPES + [BOOL]), shape=shapes, copies=st.integers(1, 4))
def test_broadcast(seed, dtype, shape, copies):
    rng = np.random.default_rng(seed)
    array = random_array(rng, dtype, shape)
    where = onesum.PerReplica([np.zeros(1)] * copies)
    for component in onesum.NcclAllReduce().broadcast(array, where):
        same_bits(component.numpy(), array)


@given(seed=seeds, dtype=st.sampled_from(DTYPES), replicas=st.integers(1, 4), elements=st.integers(0, 500))
def test_in_place(seed, dtype, replicas, elements):
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, dtype, (elements,)) for _ in range(replicas)]
    expected = reduced([array.copy() for array in arrays], False)
    onesum.ReductionToOneDevice().reduce_into(SUM, arrays, arrays)
    for array in arrays:
        same_bits(array, expected)


@given(seed=seeds, rows=st.lists(st.integers(0, 5), min_size=1, max_size=4), is_mean=st.booleans())
def test_sparse(seed, rows, is_mean):
    rng = np.random.default_rng(seed)
    values = [random_array(rng, np.dtype("float32"), (n, 3)) for n in rows]
    indices = [rng.integers(0, 9, n) for n in rows]
    slices = [
        onesum.IndexedSlices(one, index, (9, 3), device=f"CPU:{i}")
        for i, (one, index) in enumerate(zip(values, indices))
    ]
    result = onesum.ReductionToOneDevice().reduce(MEAN if is_mean else SUM, slices, "CPU:0").slices()
    expected = np.concatenate(values)
    same_bits(result.values.numpy(), expected / np.float32(len(rows)) if is_mean else expected)
    same_bits(result.indices.numpy(), np.concatenate(indices))
    assert result.dense_shape == (9, 3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_goes_in_and_out(dtype):
    array = np.ones(3, dtype)
    tensor = onesum.Tensor(array)
    assert tensor.dtype == getattr(onesum.DType, dtype.name.upper())
    assert tensor.dtype.numpy == dtype and tensor.numpy().dtype == dtype
    assert np.shares_memory(tensor.numpy(), array)
