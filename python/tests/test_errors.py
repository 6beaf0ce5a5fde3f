"""Errors: one class for each code, also the builtin that fits, with the library's own message."""

import datetime

import numpy as np
import pytest

import onesum

SUM = onesum.ReduceOp.SUM

BUILTINS = {
    onesum.InvalidArgumentError: ValueError,
    onesum.UnimplementedError: NotImplementedError,
    onesum.UnavailableError: ConnectionError,
    onesum.DeadlineExceededError: TimeoutError,
    onesum.AbortedError: ConnectionError,
    onesum.ResourceExhaustedError: MemoryError,
    onesum.InternalError: RuntimeError,
}


def test_classes():
    assert [error.code for error in BUILTINS] == list(onesum.ErrorCode)
    for error, builtin in BUILTINS.items():
        assert issubclass(error, onesum.Error) and issubclass(error, builtin)
        assert str(error("a message")) == "a message"


@pytest.mark.parametrize(
    "error, words, call",
    [
        (onesum.InvalidArgumentError, 'device "CPU:x": it has index "x"', lambda: onesum.Device("CPU:x")),
        (onesum.InvalidArgumentError, "nope", lambda: onesum.AllReduceCrossDeviceOps("nope")),
        (onesum.InvalidArgumentError, "float33", lambda: onesum.parse_dtype("float33")),
        (onesum.UnavailableError, "GPU:99", lambda: onesum.Tensor.empty("f32", 3, "GPU:99")),
        (
            onesum.UnimplementedError,
            "exact",
            lambda: onesum.ReductionToOneDevice().reduce(
                SUM, [np.ones(1)], "CPU:0", onesum.CommunicationOptions(numerics=onesum.Numerics.EXACT)
            ),
        ),
        (
            onesum.InvalidArgumentError,
            r"\[2\].*\[3\]|\[3\].*\[2\]",
            lambda: onesum.ReductionToOneDevice().reduce(SUM, [np.ones(2), np.ones(3)], "CPU:0"),
        ),
        (
            onesum.InvalidArgumentError,
            "bool",
            lambda: onesum.ReductionToOneDevice().reduce(SUM, [np.ones(2, bool)], "CPU:0"),
        ),
    ],
)
def test_messages_name_what_is_wrong(error, words, call):
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.value.code == error.code


@pytest.mark.parametrize(
    "words, call",
    [
        ("destination: int found; expected a device string, a value or a variable", lambda ops: ops.reduce(SUM, [np.ones(1)], 3)),
        (r"pairs\[0\]: ndarray found; expected", lambda ops: ops.batch_reduce(SUM, [np.ones(1)])),
        ("pairs: int found; expected a list of pairs, such as", lambda ops: ops.batch_reduce(SUM, 3)),
        ("device: float found", lambda ops: onesum.Tensor(np.ones(1), 3.0)),
        ("timeout: str found; expected seconds", lambda ops: onesum.CommunicationOptions(timeout="soon")),
        ("all_reduce_spec: int found", lambda ops: onesum.AllReduceSpecs(3)),
        ("accumulation_fn: cannot be called", lambda ops: onesum.ReductionToOneDevice(None, 3)),
        ("dtype: float found|dtype", lambda ops: onesum.Tensor.empty(3.5, 3)),
        ("incompatible function arguments", lambda ops: ops.reduce("sum", [np.ones(1)], "CPU:0")),
        (r"destinations: str", lambda ops: ops.reduce(SUM, [np.ones(1)], destinations="CPU:0")),
        (r"value\[1\]: list is no array; .*; numpy.array\(…\) makes one", lambda ops: ops.reduce(SUM, [np.ones(2), [1, 2]], "CPU:0")),
        (r"value\[0\]: str is no array; .*__dlpack__$", lambda ops: ops.reduce(SUM, ["float16"], "CPU:0")),
        (r"values\[0\]\[1\]: object is no array", lambda ops: ops.batch_reduce_into(SUM, [[np.ones(2), object()]], [np.ones(2)])),
        (r"pairs\[1\]: destination: ndarray found", lambda ops: ops.batch_reduce(SUM, [([np.ones(1)], "CPU:0"), [np.ones(1), np.ones(1)]])),
        (r"pairs\[0\]: PerReplica found; expected \(value, destination\)", lambda ops: ops.batch_reduce(SUM, [onesum.PerReplica([np.ones(1), np.ones(1)])])),
        ("pairs: zip found; expected a list of pairs", lambda ops: ops.batch_reduce(SUM, zip([np.ones(1)], ["CPU:0"]))),
        (r"devices\[1\]: int found; expected a device such as", lambda ops: onesum.MirroredStrategy(["CPU:0", 1])),
        (r'devices: str found; expected a list of devices, such as \["CPU:0"\]', lambda ops: onesum.MirroredStrategy("CPU:0")),
        (r"shape\[0\]: float found; expected an onesum.Shape, or integers", lambda ops: onesum.Tensor.empty("f32", (2.0,))),
        ("timeout: str found", lambda ops: onesum.Cluster.local().barrier("3")),
        ("ranks: str found; expected a sequence of ranks", lambda ops: onesum.Cluster.local().group("01", "x")),
    ],
)
def test_wrong_types_are_type_errors(words, call):
    with pytest.raises(TypeError, match=words):
        call(onesum.ReductionToOneDevice())


def test_lists_of_values_are_no_arrays():
    """One value, where a list of values is expected, is not taken apart."""
    ops, value = onesum.ReductionToOneDevice(), onesum.PerReplica([np.ones(2), np.ones(2)])
    for one in (value, np.ones((2, 2)), onesum.Tensor(np.ones((2, 2))), value.tensor()):
        with pytest.raises(TypeError, match=r"values: .* found; expected a list with a value for each tensor"):
            ops.batch_reduce_into(SUM, one, one)
    with pytest.raises(TypeError, match="Mirrored: ndarray found; expected a list"):
        onesum.Mirrored(np.ones((2, 2)))
    assert onesum.PerReplica(np.ones((2, 2)), ["CPU:1"]).tensor().shape == (2, 2)


def test_endless_timeouts():
    for endless in (float("inf"), 1e300, datetime.timedelta.max):
        options = onesum.CommunicationOptions(timeout=endless)
        assert options.timeout.days > 10000
        assert onesum.ReductionToOneDevice().reduce(SUM, [np.ones(1)], "CPU:0", options).numpy() == 1
        onesum.Cluster.local().barrier(endless)
    with pytest.raises(ValueError, match="timeout: nan found"):
        onesum.CommunicationOptions(timeout=float("nan"))


def test_timeouts():
    options = onesum.CommunicationOptions(timeout=0)
    with pytest.raises((onesum.DeadlineExceededError, onesum.InvalidArgumentError)):
        onesum.ReductionToOneDevice().reduce(SUM, [np.ones(1), np.ones(1)], "CPU:0", options)
    options.timeout = None
    assert options.timeout is None


def test_errors_of_functions_come_through():
    class Odd(Exception):
        pass

    def fail(tensors):
        raise Odd("on purpose")

    ops = onesum.ReductionToOneDevice(accumulation_fn=fail)
    with pytest.raises(Odd, match="on purpose"):
        ops.reduce(SUM, [np.ones(1), np.ones(1)], "CPU:0")
    work = ops.batch_reduce_async(SUM, [([np.ones(1), np.ones(1)], "CPU:0")])
    for _ in range(2):  # it may be asked again
        with pytest.raises(Odd, match="on purpose"):
            work.wait()


def test_what_functions_return_is_checked():
    ops = onesum.ReductionToOneDevice(accumulation_fn=lambda tensors: "no array")
    with pytest.raises(TypeError, match="what accumulation_fn returned: str is no array"):
        ops.reduce(SUM, [np.ones(1), np.ones(1)], "CPU:0")
    ops = onesum.ReductionToOneDevice(accumulation_fn=lambda tensors: np.ones(5))
    with pytest.raises(onesum.InvalidArgumentError):
        ops.reduce(SUM, [np.ones(1), np.ones(1)], "CPU:0")
