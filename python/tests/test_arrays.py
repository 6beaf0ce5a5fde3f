"""Arrays go in and out without copies; what cannot is refused by name."""

import gc
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import onesum

SUM = onesum.ReduceOp.SUM


def test_tensors_share_memory_with_arrays():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = onesum.Tensor(array, "CPU:1")
    assert tensor.memory == array.ctypes.data
    assert tensor.shape == (2, 3) and tensor.bytes == 24 and tensor.device == onesum.Device("CPU:1")
    for view in (tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor), np.asarray(memoryview(tensor))):
        assert np.shares_memory(view, array) and view.tolist() == array.tolist()


def test_results_are_shared_too():
    result = onesum.ReductionToOneDevice().reduce(SUM, [np.ones(3), np.ones(3)], "CPU:0")
    assert np.shares_memory(result.numpy(), result.tensor().numpy())
    assert np.shares_memory(np.asarray(result), np.from_dlpack(result))
    result.numpy()[0] = 7
    assert result.tensor().numpy().tolist() == [7, 2, 2]


def test_arrays_live_as_long_as_their_tensors():
    array = np.ones(1000)
    gone = weakref.ref(array)
    tensor = onesum.Tensor(array)
    reshaped = tensor.reshaped((10, 100))
    del array, tensor
    gc.collect()
    assert gone() is not None and reshaped.numpy().sum() == 1000
    del reshaped
    gc.collect()
    assert gone() is None


def test_memory_of_results_lives_as_long_as_their_arrays():
    array = onesum.ReductionToOneDevice().reduce(SUM, [np.ones(10000), np.ones(10000)], "CPU:0").numpy()
    view = np.from_dlpack(onesum.Tensor.from_(np.full(10000, 3.0)))
    gc.collect()
    others = [onesum.Tensor.from_(np.zeros(10000)) for _ in range(10)]
    assert array.tolist() == [2.0] * 10000 and view.tolist() == [3.0] * 10000
    del others


def test_bfloat16():
    array = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    tensor = onesum.Tensor(array)
    assert tensor.dtype == onesum.DType.BFLOAT16 and tensor.memory == array.ctypes.data
    assert tensor.numpy().dtype == ml_dtypes.bfloat16 and np.shares_memory(tensor.numpy(), array)
    assert np.asarray(tensor).dtype == ml_dtypes.bfloat16
    onesum.ReductionToOneDevice().reduce_into(SUM, [array, array.copy()], [array])
    assert array.tolist() == [2, 5, -6]


class OnlyDLPack:
    """An array of some other library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_objects_are_values():
    array = np.arange(3.0)
    gone = weakref.ref(array)
    assert onesum.Tensor(OnlyDLPack(array), "CPU:2").memory == array.ctypes.data
    value = onesum.PerReplica([OnlyDLPack(array), OnlyDLPack(np.ones(3))])
    assert [str(device) for device in value.devices] == ["/device:CPU:0", "/device:CPU:1"]
    result = onesum.ReductionToOneDevice().reduce(SUM, value, "CPU:0")
    assert result.numpy().tolist() == [1, 2, 3]
    del value, array
    gc.collect()
    assert gone() is None


def test_capsules_are_used_once():
    capsule = np.ones(2).__dlpack__()
    onesum.Tensor.from_dlpack(capsule)
    with pytest.raises(ValueError):
        onesum.Tensor.from_dlpack(capsule)
    unused = onesum.Tensor.from_(np.ones(2)).__dlpack__()  # and thrown away
    del unused
    assert onesum.Tensor.from_(np.ones(2)).__dlpack_device__() == (1, 0)


def test_dlpack_copies_if_asked():
    tensor = onesum.Tensor.from_(np.ones(2))
    copied = np.from_dlpack(tensor, copy=True)
    assert not np.shares_memory(copied, tensor.numpy())
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))


def test_array_protocol():
    tensor = onesum.Tensor.from_(np.arange(3))
    assert np.asarray(tensor, dtype=np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(tensor, copy=True), tensor.numpy())
    scalar = onesum.Tensor(np.float32(3))
    assert scalar.shape == () and scalar.numpy() == 3
    assert onesum.Tensor.empty("f32", (0, 3)).numpy().shape == (0, 3)


def test_one_element_is_a_number():
    text = onesum.Tensor(np.frombuffer(b"5", np.uint8))  # which Python could read as text
    assert float(text) == int(text) == 53
    total = onesum.ReductionToOneDevice().reduce(SUM, [np.array([1.5]), np.array([2.0])], "CPU:0")
    assert float(total) == 3.5 and int(total) == 3
    with pytest.raises(ValueError, match="size 1"):
        float(onesum.Tensor(np.ones(2)))


@pytest.mark.parametrize(
    "array, error, words",
    [
        (np.zeros((4, 4))[:, ::2], ValueError, r"shape \[4,2\] is not dense and row-major; pass numpy.ascontig"),
        (np.zeros((3, 4)).T, ValueError, "not dense and row-major"),
        (np.zeros(3, ">f4"), TypeError, "dtype >f4 is not in this machine's byte order"),
        (np.zeros(3, object), TypeError, "dtype object is not known to onesum"),
        (np.zeros(3, np.longdouble), TypeError, "is not known to onesum; expected one of onesum.DType"),
        (np.zeros(3, "U4"), TypeError, "is not known to onesum"),
        (np.zeros(3, "M8[s]"), TypeError, "is not known to onesum"),
        (np.zeros(3, ml_dtypes.float8_e4m3fn), TypeError, "dtype float8_e4m3fn is not known to onesum"),
        (np.zeros(3, [("a", "f4")]), TypeError, "is not known to onesum"),
        (3.5, TypeError, "float is no array; expected an onesum.Tensor, a NumPy array or an object with __dlpack__"),
        ("CPU:0", TypeError, "str is no array"),
        (None, TypeError, "NoneType is no array"),
    ],
    ids=str,
)
def test_what_cannot_be_taken_is_refused(array, error, words):
    with pytest.raises(error, match=words):
        onesum.PerReplica([array])


def test_read_only_arrays_are_inputs_only():
    ops = onesum.ReductionToOneDevice()
    array = np.ones(3)
    array.flags.writeable = False
    assert ops.reduce(SUM, [array, array.copy()], "CPU:0").numpy().tolist() == [2, 2, 2]
    tensor = onesum.Tensor(array)
    assert not tensor.numpy().flags.writeable
    with pytest.raises(BufferError):
        tensor.__dlpack__()
    for results in ([array], [tensor], onesum.PerReplica([tensor.reshaped((3, 1)).reshaped(3)])):
        with pytest.raises(ValueError, match="read-only"):
            ops.reduce_into(SUM, [np.ones(3), np.ones(3)], results)
    assert array.tolist() == [1, 1, 1]
    del tensor, results
    gc.collect()
    array.flags.writeable = True
    ops.reduce_into(SUM, [np.ones(3), np.ones(3)], [array])
    assert array.tolist() == [2, 2, 2]


def test_arrays_that_cannot_move_stay():
    """A bytearray cannot be resized while a tensor has its memory."""
    data = bytearray(8)
    tensor = onesum.Tensor(data)
    with pytest.raises(BufferError):
        data.append(1)
    del tensor
    data.append(1)


def test_references_are_stable():
    ops = onesum.ReductionToOneDevice()
    arrays = [np.ones(4, np.float32), np.ones(4, np.float32)]
    half = np.ones(4, ml_dtypes.bfloat16)
    dlpack = OnlyDLPack(np.ones(4))
    frozen = np.ones(4)
    frozen.flags.writeable = False
    watched = [*arrays, half, dlpack, dlpack.array, frozen, ops]

    def calls():
        value = onesum.PerReplica(arrays)
        ops.reduce(SUM, value, "CPU:0").numpy()
        ops.batch_reduce(SUM, [(arrays, value), ([half, half.copy()], "CPU:1")])
        ops.reduce_into(SUM, arrays, arrays)
        ops.batch_reduce_async(SUM, [(arrays, "CPU:0")]).results()
        ops.prepare(SUM, [arrays], [arrays]).run()
        ops.broadcast(dlpack, "CPU:0")
        ops.reduce(SUM, [frozen, frozen], "CPU:0") if False else ops.broadcast(frozen, "CPU:0")
        with pytest.raises(ValueError):
            ops.reduce(SUM, [arrays[0], np.ones(5, np.float32)], "CPU:0")
        with pytest.raises(TypeError):
            ops.reduce(SUM, [arrays[0], object()], "CPU:0")

    for _ in range(10):
        calls()
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    objects = len(gc.get_objects())
    for _ in range(1000):
        calls()
    gc.collect()
    assert [sys.getrefcount(thing) for thing in watched] == before
    assert abs(len(gc.get_objects()) - objects) < 50


def test_replicas_default_to_devices_in_order():
    value = onesum.PerReplica([np.ones(1), onesum.Tensor(np.ones(1), "CPU:7"), np.ones(1)])
    assert [device.index for device in value.devices] == [0, 7, 2]
    with pytest.raises(ValueError, match="2 values, but 1 devices"):
        onesum.PerReplica([np.ones(1), np.ones(1)], ["CPU:0"])
    assert len(onesum.PerReplica(np.ones(3))) == 1  # one replica may be given as it is
    with pytest.raises(IndexError):
        value[3]
    assert value[-1].device.index == 2
