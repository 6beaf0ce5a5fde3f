"""The C++ library. Use the names in `onesum`."""

from collections.abc import Callable, Generator, Iterator, Sequence
import datetime
import enum
from typing import Any, overload

import onesum.typing


version: str = '0.1.0'

class ErrorCode(enum.Enum):
    """
    What the caller of a call that failed should do.

    >>> onesum.InvalidArgumentError.code
    ErrorCode.INVALID_ARGUMENT
    """

    INVALID_ARGUMENT = 0
    """Fix the call."""

    UNIMPLEMENTED = 1
    """Choose another policy."""

    UNAVAILABLE = 2
    """Rebuild the group."""

    DEADLINE_EXCEEDED = 3
    """Wait longer."""

    ABORTED = 4
    """Look at the replica or worker that the message names."""

    RESOURCE_EXHAUSTED = 5
    """Free memory."""

    INTERNAL = 6
    """Report a bug."""

@overload
def to_string(code: ErrorCode) -> str:
    """
    The name of an ErrorCode, a DType or a CollectiveKind, as messages have it.

    >>> onesum.to_string(onesum.ErrorCode.DEADLINE_EXCEEDED)
    'deadline_exceeded'
    """

@overload
def to_string(dtype: DType) -> str:
    """
    >>> onesum.to_string(onesum.DType.FLOAT32)
    'float32'
    """

@overload
def to_string(kind: CollectiveKind) -> str:
    """
    >>> onesum.to_string(onesum.CollectiveKind.ALL_TO_ALL)
    'all_to_all'
    """

class ReduceOp(enum.Enum):
    """
    What becomes of the replicas of a value.

    MIN and MAX are not of complex numbers, and only integers and bool have bits to combine; bool has no SUM and MEAN.

    >>> a, b = np.array([6, 1]), np.array([3, 5])
    >>> for op in onesum.ReduceOp:
    ...     print(op.name, onesum.ReductionToOneDevice().reduce(op, [a, b], "CPU:0").numpy().tolist())
    SUM [9, 6]
    MEAN [4.5, 3.0]
    PRODUCT [18, 5]
    MIN [3, 1]
    MAX [6, 5]
    BIT_AND [2, 1]
    BIT_OR [7, 5]
    BIT_XOR [5, 4]
    """

    SUM = 0

    MEAN = 1

    PRODUCT = 2

    MIN = 3

    MAX = 4

    BIT_AND = 5

    BIT_OR = 6

    BIT_XOR = 7

class Implementation(enum.Enum):
    """
    A hint who should move the data.

    >>> onesum.CommunicationOptions().implementation
    Implementation.AUTO
    """

    AUTO = 0

    RING = 1

    NCCL = 2

class Numerics(enum.Enum):
    """
    Which orders of additions are allowed.

    >>> onesum.CommunicationOptions().numerics
    Numerics.CANONICAL
    """

    CANONICAL = 0
    """The same bits on every layout."""

    FAST = 1
    """Any order that is deterministic for the layout."""

    EXACT = 2
    """The correctly rounded result; not yet."""

class SparseRows(enum.Enum):
    """
    What becomes of rows of IndexedSlices that occur twice.

    >>> onesum.CommunicationOptions(sparse_rows=onesum.SparseRows.MERGE_DUPLICATES).sparse_rows
    SparseRows.MERGE_DUPLICATES
    """

    CONCATENATE = 0

    MERGE_DUPLICATES = 1

class CommunicationOptions:
    """
    Options of one call.

    They are validated when a call takes them, before any work.

    bytes_per_pack  0: decided by the library
    timeout         of the whole call, from entry, in seconds or as a timedelta; None: 30 minutes
    implementation  a hint
    numerics        which orders of additions are allowed
    sparse_rows     what becomes of rows that occur twice

    >>> options = onesum.CommunicationOptions(timeout=2.5)
    >>> options.timeout
    datetime.timedelta(seconds=2, microseconds=500000)
    """

    def __init__(self, bytes_per_pack: int = 0, timeout: float | datetime.timedelta | None = None, implementation: Implementation = ..., numerics: Numerics = ..., sparse_rows: SparseRows = ...) -> None: ...

    @property
    def bytes_per_pack(self) -> int: ...

    @bytes_per_pack.setter
    def bytes_per_pack(self, arg: int, /) -> None: ...

    @property
    def timeout(self) -> datetime.timedelta | None: ...

    @timeout.setter
    def timeout(self, timeout: float | datetime.timedelta | None, /) -> None: ...

    @property
    def implementation(self) -> Implementation: ...

    @implementation.setter
    def implementation(self, arg: Implementation, /) -> None: ...

    @property
    def numerics(self) -> Numerics: ...

    @numerics.setter
    def numerics(self, arg: Numerics, /) -> None: ...

    @property
    def sparse_rows(self) -> SparseRows: ...

    @sparse_rows.setter
    def sparse_rows(self, arg: SparseRows, /) -> None: ...

class DType(enum.Enum):
    """
    Element types of tensors.

    Wherever one is taken, NumPy's dtypes and names are too; `numpy` gives NumPy's.

    >>> onesum.DType.FLOAT32.numpy
    dtype('float32')
    >>> onesum.Tensor.empty("bf16", [2], "CPU:0").dtype
    DType.BFLOAT16
    """

    BOOL = 0

    UINT8 = 1

    INT8 = 2

    UINT16 = 3

    INT16 = 4

    UINT32 = 5

    INT32 = 6

    UINT64 = 7

    INT64 = 8

    FLOAT16 = 9

    BFLOAT16 = 10

    FLOAT32 = 11

    FLOAT64 = 12

    COMPLEX64 = 13

    COMPLEX128 = 14

    @property
    def numpy(self) -> onesum.typing.NumpyDType:
        """NumPy's dtype; of bfloat16 that of ml_dtypes."""

def parse_dtype(text: str) -> DType:
    """
    The type of a name: "float32", "f32", "bf16", "i64", ….

    >>> onesum.parse_dtype("u8")
    DType.UINT8
    """

def size_of(dtype: onesum.typing.DTypeLike) -> int:
    """
    Bytes of one element.

    >>> onesum.size_of(np.complex128)
    16
    """

def result_dtype(op: ReduceOp, input: onesum.typing.DTypeLike) -> DType:
    """
    The type of a reduction's result.

    >>> onesum.result_dtype(onesum.ReduceOp.MEAN, np.int32)
    DType.FLOAT64
    """

class Shape:
    """
    The extents of a tensor. None is a scalar.

    Reads like a tuple; tuples, lists and integers are taken wherever a Shape is.

    >>> shape = onesum.Shape([2, 3])
    >>> shape.elements, shape.rank, tuple(shape), shape == (2, 3)
    (6, 2, (2, 3), True)
    """

    def __init__(self, extents: onesum.typing.ShapeLike = ()) -> None: ...

    @property
    def extents(self) -> tuple[int, ...]: ...

    @property
    def rank(self) -> int: ...

    @property
    def elements(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, axis: int, /) -> int: ...

    def __iter__(self) -> Iterator[int]: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def to_string(self) -> str:
        """
        The text.

        >>> onesum.Shape((2, 3)).to_string()
        '[2,3]'
        """

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class Device:
    """
    Where a tensor's memory lives. Strings are taken wherever a Device is.

    >>> device = onesum.Device("/job:worker/task:1/device:GPU:0")
    >>> device.job, device.task, device.type, device.index
    ('worker', 1, 'GPU', 0)
    >>> print(onesum.Device("CPU:1").canonical())
    /job:localhost/replica:0/task:0/device:CPU:1
    """

    def __init__(self, text: onesum.typing.DeviceLike | None = None) -> None: ...

    @staticmethod
    def parse(text: str) -> Device:
        """
        The device of a text.

        >>> onesum.Device.parse("gpu:1")
        Device('/device:GPU:1')
        """

    @property
    def job(self) -> str | None: ...

    @property
    def replica(self) -> int | None: ...

    @property
    def task(self) -> int | None: ...

    @property
    def type(self) -> str | None: ...

    @property
    def index(self) -> int | None: ...

    def is_empty(self) -> bool:
        """
        Whether nothing is set.

        >>> onesum.Device().is_empty()
        True
        """

    def is_complete(self) -> bool:
        """
        Whether all five fields are set.

        >>> onesum.Device("CPU:0").is_complete()
        False
        """

    def merged_over(self, defaults: onesum.typing.DeviceLike) -> Device:
        """
        This device with what it leaves unset taken from `defaults`.

        >>> onesum.Device("CPU:0").merged_over("/job:worker/task:1")
        Device('/job:worker/task:1/device:CPU:0')
        """

    def canonical(self, defaults: onesum.typing.DeviceLike | None = None) -> Device:
        """
        Complete: merged over `defaults`, then over /job:localhost/replica:0/task:0/device:CPU:0.

        >>> onesum.Device("/task:1").canonical().is_complete()
        True
        """

    def host(self) -> Device:
        """
        The CPU that this device hangs on.

        >>> onesum.Device("/task:1/device:GPU:3").host()
        Device('/task:1/device:CPU:0')
        """

    def to_string(self) -> str:
        """
        The text, which parses back.

        >>> onesum.Device("cpu:0").to_string()
        '/device:CPU:0'
        """

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

class Tensor:
    """
    A handle to memory on a device: of the library, or borrowed from an array.

    `Tensor(array, device)` is `Tensor.borrow`. It has the buffer protocol and `__dlpack__`, so `numpy.asarray`
    and others share its memory.

    >>> tensor = onesum.Tensor(np.ones((2, 3), np.float32), "CPU:1")
    >>> tensor
    Tensor(float32[2,3] on /device:CPU:1)
    >>> np.asarray(tensor).sum()
    np.float32(6.0)
    """

    def __init__(self, array: onesum.typing.ArrayLike, device: onesum.typing.DeviceLike = 'CPU:0') -> None: ...

    @staticmethod
    def borrow(array: onesum.typing.ArrayLike, device: onesum.typing.DeviceLike = 'CPU:0') -> Tensor:
        """
        The array's own memory, which lives as long as the tensor.

        Taken are dense, row-major arrays of types that onesum has: with the buffer protocol (NumPy), of
        ml_dtypes.bfloat16, or with `__dlpack__`. Memory of a GPU is on its own device.

        >>> array = np.zeros(2, np.float32)
        >>> tensor = onesum.Tensor.borrow(array, "CPU:1")
        >>> array[0] = 7
        >>> tensor.numpy().tolist()
        [7.0, 0.0]
        """

    @staticmethod
    def empty(dtype: onesum.typing.DTypeLike, shape: onesum.typing.ShapeLike, device: onesum.typing.DeviceLike = 'CPU:0') -> Tensor:
        """
        Memory of the library, its contents unspecified.

        >>> onesum.Tensor.empty(np.float32, (2, 3), "CPU:0")
        Tensor(float32[2,3] on /device:CPU:0)
        """

    @staticmethod
    def from_dlpack(source: Any, stream: int | None = None) -> Tensor:
        """
        The memory of an object with `__dlpack__` (or of a capsule), on the device that it says.

        `stream` is of GPUs only: calls wait for what it was given before.

        >>> onesum.Tensor.from_dlpack(np.ones(3))
        Tensor(float64[3] on /device:CPU:0)
        """

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def device(self) -> Device:
        """As given: it may be partial."""

    @property
    def bytes(self) -> int: ...

    @property
    def memory(self) -> int:
        """The address on its device."""

    def numpy(self) -> onesum.typing.Array:
        """
        An array that shares the memory and keeps it alive; of CPU memory only.

        >>> tensor = onesum.Tensor.from_(np.ones(2))
        >>> tensor.numpy()[0] = 5
        >>> tensor.numpy().tolist()
        [5.0, 1.0]
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> onesum.typing.Array: ...

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __float__(self) -> float: ...

    def __int__(self) -> int: ...

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

    def copied_to(self, device: onesum.typing.DeviceLike) -> Tensor:
        """
        A copy on another device of this process.

        >>> onesum.Tensor.from_(np.ones(2)).copied_to("CPU:1")
        Tensor(float64[2] on /device:CPU:1)
        """

    def reshaped(self, shape: onesum.typing.ShapeLike) -> Tensor:
        """
        The same memory under another shape of as many elements.

        >>> onesum.Tensor.from_(np.ones(6)).reshaped((2, 3)).shape
        Shape([2,3])
        """

class IndexedSlices:
    """
    A sparse update: zeros to which rows are added.

    `values[k]` is added at `indices[k]`; an index may occur more than once. `dense_shape` is the shape of the whole,
    if it is known. Arrays are on `device`.

    >>> rows = onesum.IndexedSlices(np.ones((2, 3)), np.array([4, 0]), (5, 3), device="CPU:1")
    >>> rows.values.shape, rows.indices.numpy().tolist(), rows.dense_shape
    (Shape([2,3]), [4, 0], Shape([5,3]))
    """

    def __init__(self, values: onesum.typing.ArrayLike, indices: onesum.typing.ArrayLike, dense_shape: onesum.typing.ShapeLike | None = None, device: onesum.typing.DeviceLike = 'CPU:0') -> None: ...

    @property
    def values(self) -> Tensor: ...

    @property
    def indices(self) -> Tensor: ...

    @property
    def dense_shape(self) -> Shape | None: ...

    def __repr__(self) -> str: ...

def device_of(value: onesum.typing.ValueLike) -> Device:
    """
    The device of a value's memory.

    >>> onesum.device_of(onesum.Tensor(np.ones(2), "CPU:3"))
    Device('/device:CPU:3')
    """

class DistributedValues:
    """
    Components in replica order.

    Reads like a sequence of `Tensor`s and `IndexedSlices`.

    >>> value = onesum.PerReplica([np.ones(2), np.zeros(2)])
    >>> len(value), value[1].numpy().tolist(), [str(d) for d in value.devices]
    (2, [0.0, 0.0], ['/device:CPU:0', '/device:CPU:1'])
    """

    def __len__(self) -> int: ...

    def __getitem__(self, arg: int, /) -> Tensor | IndexedSlices: ...

    def __iter__(self) -> Iterator[Tensor | IndexedSlices]: ...

    @property
    def size(self) -> int: ...

    @property
    def values(self) -> list[Tensor | IndexedSlices]: ...

    def value(self, replica: int) -> Tensor | IndexedSlices:
        """
        The component of a replica.

        >>> onesum.PerReplica([np.ones(2)]).value(0)
        Tensor(float64[2] on /device:CPU:0)
        """

    def tensor(self, replica: int = 0) -> Tensor:
        """
        The same, which must be dense.

        >>> onesum.PerReplica([np.ones(2)]).tensor().numpy().tolist()
        [1.0, 1.0]
        """

    def slices(self, replica: int = 0) -> IndexedSlices:
        """
        The same, which must be sparse.

        >>> rows = onesum.IndexedSlices(np.ones((1, 2)), np.array([3]))
        >>> onesum.PerReplica([rows]).slices().indices.numpy().tolist()
        [3]
        """

    @property
    def devices(self) -> list[Device]: ...

class Mirrored(DistributedValues):
    """
    Equal copies, one per device.

    What reductions return. With one device it reads as that tensor: `numpy()`, `numpy.asarray`, `__dlpack__`.

    >>> ops = onesum.ReductionToOneDevice()
    >>> value = onesum.PerReplica([np.array([1.0]), np.array([2.0])])
    >>> ops.reduce(onesum.ReduceOp.SUM, value, "CPU:0").numpy()
    array([3.])
    >>> ops.reduce(onesum.ReduceOp.SUM, value, value)
    Mirrored(/job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:CPU:1)
    """

    def __init__(self, values: Sequence[onesum.typing.ValueLike], devices: Sequence[onesum.typing.DeviceLike] | None = None) -> None: ...

    def numpy(self) -> onesum.typing.Array:
        """
        The array of the only copy.

        >>> onesum.Mirrored([np.ones(2)]).numpy()
        array([1., 1.])
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> onesum.typing.Array: ...

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __float__(self) -> float: ...

    def __int__(self) -> int: ...

    def __repr__(self) -> str: ...

class PerReplica(DistributedValues):
    """
    Components that may differ: what is reduced.

    Components are `Tensor`s, `IndexedSlices` or arrays; arrays are on `devices`, or on CPU:0, CPU:1, … if none are
    given. Where one is taken, a list of components, a `Mirrored`, a variable, or one component is taken too.
    `PerReplica()` has none: what a worker passes that brings nothing to a call of several, or gets nothing of it.

    >>> onesum.PerReplica([np.ones(2), np.ones(2)], devices=["/task:0/device:CPU:0", "/task:1/device:CPU:0"])
    PerReplica(/task:0/device:CPU:0, /task:1/device:CPU:0)
    """

    def __init__(self, values: onesum.typing.PerReplicaLike = (), devices: Sequence[onesum.typing.DeviceLike] | None = None) -> None: ...

    def __repr__(self) -> str: ...

class Destination:
    """
    Where results go: the devices of a value, or a device string.

    Strings, values and variables are taken wherever a Destination is.

    >>> onesum.Destination("CPU:0").devices
    [Device('/device:CPU:0')]
    """

    def __init__(self, where: onesum.typing.DestinationLike) -> None: ...

    @property
    def devices(self) -> list[Device]: ...

    def is_text(self) -> bool:
        """
        Whether it was made from a device string.

        >>> onesum.Destination("CPU:0").is_text()
        True
        """

class ValueDestination:
    """
    A value and where its reduction goes.

    Tuples are taken wherever one is.

    >>> pair = onesum.ValueDestination([np.ones(2), np.ones(2)], "CPU:0")
    >>> len(pair.value), pair.destination.devices
    (2, [Device('/device:CPU:0')])
    """

    def __init__(self, value: onesum.typing.PerReplicaLike, destination: onesum.typing.DestinationLike) -> None: ...

    @property
    def value(self) -> PerReplica: ...

    @property
    def destination(self) -> Destination: ...

class Variable:
    """
    A named, mutable value.

    Made inside a strategy's scope it is mirrored: it has a component on each device of the strategy.

    >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> with strategy.scope():
    ...     weights = onesum.Variable("weights", np.zeros(2))
    >>> weights.is_mirrored(), len(weights.components)
    (True, 2)
    """

    def __init__(self, name: str, initial: onesum.typing.ArrayLike) -> None: ...

    @property
    def name(self) -> str: ...

    def is_mirrored(self) -> bool:
        """
        Whether it has a component per device.

        >>> onesum.Variable("step", np.zeros(1)).is_mirrored()
        False
        """

    @property
    def components(self) -> list[Tensor]: ...

    @property
    def devices(self) -> list[Device]: ...

    def value(self) -> Tensor:
        """
        In a replica the component on its device, else the first one.

        >>> onesum.Variable("step", np.array([3])).value().numpy()
        array([3])
        """

    def numpy(self) -> onesum.typing.Array:
        """
        The same as an array.

        >>> onesum.Variable("step", np.array([3])).numpy()
        array([3])
        """

    def assign(self, value: onesum.typing.ArrayLike | Mirrored) -> None:
        """
        Copies a value into the component on the replica's device; in cross-replica context into all.

        >>> step = onesum.Variable("step", np.array([3]))
        >>> step.assign(np.array([4]))
        >>> step.numpy()
        array([4])
        """

    def __repr__(self) -> str: ...

class MirroredVariable(Variable):
    """
    A Variable on devices given by name.

    >>> onesum.MirroredVariable("w", np.zeros(2), ["CPU:0", "CPU:1"]).devices
    [Device('/device:CPU:0'), Device('/device:CPU:1')]
    """

    def __init__(self, name: str, initial: onesum.typing.ArrayLike, devices: Sequence[onesum.typing.DeviceLike]) -> None: ...

class Cluster:
    """
    Who takes part in calls.

    Its workers are in this process, or processes of their own that make the same calls in the same order. Calls on a
    cluster run one after the other. The first failure of a worker ends the group: every call on it raises an error
    that names the worker. A `with` statement closes it.

    >>> with onesum.Cluster.from_environment() as cluster:
    ...     ops = onesum.AllReduceCrossDeviceOps("auto", cluster=cluster)
    ...     cluster.rank, cluster.size
    (0, 1)
    """

    @staticmethod
    def local(devices: Sequence[onesum.typing.DeviceLike] | None = None) -> Cluster:
        """
        The named devices of this process; without names all of its CPUs.

        >>> onesum.Cluster.local(["CPU:0", "CPU:1"]).devices[1].index
        1
        """

    @staticmethod
    def embedded(worker_devices: Sequence[onesum.typing.DeviceLike], devices_per_worker: int, type: str = 'CPU') -> Cluster:
        """
        Several workers inside this process.

        >>> onesum.Cluster.embedded(["/job:worker/task:0", "/job:worker/task:1"], 2).size
        2
        """

    @staticmethod
    def from_environment() -> Cluster:
        """
        The workers that the launcher of this process has started; else this process alone.

        Waits for all workers. Launchers: `onesum run`, TF_CONFIG, torchrun, Slurm, the MPIs.

        >>> onesum.Cluster.from_environment().rank
        0
        """

    def barrier(self, timeout: float | datetime.timedelta | None = None) -> None:
        """
        Returns when all workers have called it, and all earlier calls on this cluster are done.

        timeout  in seconds, or a timedelta; None: 30 minutes. Then DeadlineExceededError names who did not come.

        >>> onesum.Cluster.local().barrier(timeout=10)
        """

    def shrink(self, timeout: float | datetime.timedelta | None = None) -> Cluster:
        """
        Those who are left of the group, as a new cluster; the old one is over.

        >>> onesum.Cluster.local().shrink(timeout=10).size
        1
        """

    def duplicate(self) -> Cluster:
        """
        The same workers once more, with a sequence of calls of its own.

        >>> onesum.Cluster.local().duplicate().size
        1
        """

    def split(self, ranks: Sequence[int]) -> Cluster:
        """
        A cluster of some of the workers; the first of the ranks becomes 0.

        All workers call it, each with the ranks of the cluster that it will be in.

        >>> workers = onesum.Cluster.embedded(["/job:worker/task:0", "/job:worker/task:1"], 1)
        >>> str(workers.split([1]).workers[0])
        '/job:worker/replica:0/task:1'
        """

    def group(self, ranks: Sequence[int], name: str, timeout: float | datetime.timedelta | None = None) -> Cluster:
        """
        The same without the others: only those of `ranks` call it, and wait for each other.

        name     tells groups of the same workers apart that they make at the same time
        timeout  in seconds, or a timedelta; None: 30 minutes

        >>> workers = onesum.Cluster.embedded([f"/job:worker/task:{task}" for task in range(3)], 1)
        >>> workers.group([2, 0], "the even ones").size
        2
        """

    def close(self) -> None:
        """
        Tells the other workers that this one has left; calls are refused from then on.

        >>> onesum.Cluster.local().close()
        """

    def __enter__(self) -> Cluster: ...

    def __exit__(self, *args: object) -> None: ...

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def workers(self) -> list[Device]: ...

    @property
    def devices(self) -> list[Device]: ...

    @property
    def completed_calls(self) -> int: ...

    @property
    def completed_by_all(self) -> int: ...

    def __repr__(self) -> str: ...

class ReduceSpec:
    """
    What a reduction would be given, without the memory: for planning.

    >>> spec = onesum.ReduceSpec("float32", (1024,), ["CPU:0", "CPU:1"], ["CPU:0"])
    >>> onesum.ReductionToOneDevice().plan(onesum.ReduceOp.SUM, [spec]).algorithm
    'one_device'
    """

    def __init__(self, dtype: onesum.typing.DTypeLike, shape: onesum.typing.ShapeLike, replicas: Sequence[onesum.typing.DeviceLike], destinations: Sequence[onesum.typing.DeviceLike]) -> None: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def replicas(self) -> list[Device]: ...

    @property
    def destinations(self) -> list[Device]: ...

class Plan:
    """
    The schedule of a call, to look at.

    >>> ops = onesum.ReductionToOneDevice()
    >>> plan = ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
    >>> plan.algorithm, plan.order
    ('one_device', 'canonical')
    >>> plan.verify()
    """

    def to_text(self) -> str:
        """
        The plan as text.

        >>> ops = onesum.ReductionToOneDevice()
        >>> plan = ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
        >>> plan.to_text().splitlines()[0]
        'plan one_device'
        """

    def to_svg(self) -> str:
        """
        The plan as a drawing.

        >>> ops = onesum.ReductionToOneDevice()
        >>> plan = ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
        >>> "<svg" in plan.to_svg()
        True
        """

    def verify(self) -> None:
        """
        Proves that the plan computes what it should; raises an error that names the steps at fault.

        >>> ops = onesum.ReductionToOneDevice()
        >>> ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).verify()
        """

    @property
    def algorithm(self) -> str: ...

    @property
    def order(self) -> str:
        """Of additions: "canonical", or what it is instead."""

    @property
    def pack_elements(self) -> list[int]: ...

    @property
    def devices(self) -> list[Device]:
        """By number in the plan."""

    def __str__(self) -> str: ...

class CollectiveKind(enum.Enum):
    """
    What a Collective does.

    >>> onesum.Collective.broadcast([np.ones(2)], [[np.zeros(2), np.zeros(2)]]).kind
    CollectiveKind.BROADCAST
    """

    REDUCE = 0
    """Every result gets the sum (or mean, …) of all replicas."""

    BROADCAST = 1
    """Every result gets the root's replica."""

    REDUCE_SCATTER = 2
    """
    The sum of all replicas is shared out: every result gets the next part of it.
    """

    ALL_GATHER = 3
    """Every result gets all replicas, one after the other."""

    SCATTER = 4
    """
    The root's replica is shared out: every result gets the next part of it.
    """

    ALL_TO_ALL = 5
    """
    Every replica is shared out: every result gets its part of each, one after the other.
    """

def parse_collective_kind(text: str) -> CollectiveKind:
    """
    The kind of a name: "reduce", "reduce_scatter", ….

    >>> onesum.parse_collective_kind("all_gather")
    CollectiveKind.ALL_GATHER
    """

class Collective:
    """
    What is to be done with which arrays; CrossDeviceOps.run does it.

    values[i] has this process's replicas of tensor i, results[i] the arrays of its results; one alone may be given
    as it is. Replicas and results count over all workers in rank order. A worker that brings nothing, or gets
    nothing, passes `PerReplica()` there. Where parts are handed out, numbers of elements must fit and shapes need
    not. A result may be exactly the memory that it takes the place of; any other overlap is refused.

    has_equal_parts  a promise of all workers that everyone's parts are equally large, which saves asking
    receiver         the only worker that passes arrays for results; -1: whoever passes some

    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    >>> call = onesum.Collective.reduce_scatter(onesum.ReduceOp.SUM, [[a, b]], [[a[:1], b[1:]]])
    >>> onesum.ReductionToOneDevice().run(call)
    >>> a, b
    (array([4., 2.]), array([3., 6.]))
    """

    @staticmethod
    def reduce(op: ReduceOp, values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], *, receiver: int = -1) -> Collective:
        """
        Every result gets the sum (or mean, …) of all replicas.

        >>> a, b, largest = np.array([1, 5]), np.array([3, 2]), np.zeros(2, int)
        >>> call = onesum.Collective.reduce(onesum.ReduceOp.MAX, [[a, b]], [largest])
        >>> onesum.ReductionToOneDevice().run(call)
        >>> largest
        array([3, 5])
        """

    @staticmethod
    def reduce_scatter(op: ReduceOp, values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], *, has_equal_parts: bool = False) -> Collective:
        """
        The sum of all replicas is shared out; the parts are as large as the results.

        >>> values, first, rest = [np.arange(3), np.arange(3)], np.zeros(1, int), np.zeros(2, int)
        >>> call = onesum.Collective.reduce_scatter(onesum.ReduceOp.SUM, [values], [[first, rest]])
        >>> onesum.ReductionToOneDevice().run(call)
        >>> first, rest
        (array([0]), array([2, 4]))
        """

    @staticmethod
    def broadcast(values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], root: int = 0) -> Collective:
        """
        Every result gets the root's replica. The root is a worker, which has one replica.

        >>> a, b = np.zeros(2), np.zeros(2)
        >>> onesum.ReductionToOneDevice().run(onesum.Collective.broadcast([np.ones(2)], [[a, b]]))
        >>> a, b
        (array([1., 1.]), array([1., 1.]))
        """

    @staticmethod
    def scatter(values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], root: int = 0, *, has_equal_parts: bool = False) -> Collective:
        """
        The root's replica is shared out; the parts are as large as the results.

        >>> first, rest = np.zeros(1), np.zeros(2)
        >>> onesum.ReductionToOneDevice().run(onesum.Collective.scatter([np.arange(3.0)], [[first, rest]]))
        >>> first, rest
        (array([0.]), array([1., 2.]))
        """

    @staticmethod
    def all_gather(values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], *, has_equal_parts: bool = False, receiver: int = -1) -> Collective:
        """
        Every result gets all replicas, one after the other.

        >>> a, b, whole = np.zeros(1), np.ones(2), np.empty(3)
        >>> onesum.ReductionToOneDevice().run(onesum.Collective.all_gather([[a, b]], [whole]))
        >>> whole
        array([0., 1., 1.])
        """

    @staticmethod
    def all_to_all(values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], splits: Sequence[Sequence[int]] = (), *, has_equal_parts: bool = False) -> Collective:
        """
        Every replica is shared out, each result gets its part of each: equal parts, or as `splits` say.

        splits  of each replica of this process, how many elements each result gets; of one tensor only

        >>> values, a, b = [np.array([1, 2, 3]), np.array([4, 5])], np.zeros(2, int), np.zeros(3, int)
        >>> call = onesum.Collective.all_to_all([values], [[a, b]], splits=[[1, 2], [1, 1]])
        >>> onesum.ReductionToOneDevice().run(call)
        >>> a, b
        (array([1, 4]), array([2, 3, 5]))
        """

    @property
    def kind(self) -> CollectiveKind: ...

    @property
    def op(self) -> ReduceOp:
        """Of REDUCE and REDUCE_SCATTER."""

    @property
    def root(self) -> int:
        """Of BROADCAST and SCATTER: the worker whose value counts."""

    @property
    def values(self) -> list[PerReplica]: ...

    @property
    def results(self) -> list[PerReplica]: ...

    @property
    def splits(self) -> list[list[int]]:
        """Of ALL_TO_ALL; empty: equal parts."""

    @property
    def has_equal_parts(self) -> bool: ...

    @property
    def receiver(self) -> int:
        """Of REDUCE and ALL_GATHER; -1: whoever passes memory."""

    def __repr__(self) -> str: ...

class CollectiveSpec:
    """
    A Collective without the memory: for planning.

    What is shared out is shared out as equally as can be. `root` counts the replicas of the tensor.

    >>> tensor = onesum.ReduceSpec("float32", (1024,), ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"])
    >>> spec = onesum.CollectiveSpec(onesum.CollectiveKind.ALL_GATHER, tensor)
    >>> onesum.ReductionToOneDevice().plan(spec).pack_elements
    [1024, 1024]
    """

    def __init__(self, kind: CollectiveKind, tensor: ReduceSpec, *, op: ReduceOp = ReduceOp.SUM, root: int = 0) -> None: ...

    @property
    def kind(self) -> CollectiveKind: ...

    @property
    def op(self) -> ReduceOp: ...

    @property
    def root(self) -> int: ...

    @property
    def tensor(self) -> ReduceSpec: ...

class Work:
    """
    A call under way. Dropping it waits for it, until Ctrl-C.

    Where the interpreter ends first, it has five seconds; then its cluster is closed.

    >>> ops = onesum.ReductionToOneDevice()
    >>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
    >>> work.results()[0].numpy()
    array([2., 2.])

    In asyncio it is awaited:

    >>> import asyncio
    >>> async def main():
    ...     return await ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
    >>> asyncio.run(main())[0].numpy()
    array([2., 2.])
    """

    def wait(self, timeout: float | datetime.timedelta | None = None) -> None:
        """
        Until done; raises what the call raised. After the timeout: DeadlineExceededError; the call goes on.

        >>> ops = onesum.ReductionToOneDevice()
        >>> ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).wait(timeout=10)
        """

    def wait_for(self, longest: float | datetime.timedelta) -> bool:
        """
        Whether it is done by then, in seconds or as a timedelta. Raises nothing of the call's.

        >>> ops = onesum.ReductionToOneDevice()
        >>> ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).wait_for(10)
        True
        """

    def when_done(self, fn: Callable[[], object]) -> None:
        """
        Calls fn() once it is done: at once if it is, else on the thread that has done it.

        It must not wait for other Works. What it raises goes to sys.unraisablehook.

        >>> ops = onesum.ReductionToOneDevice()
        >>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
        >>> work.wait(); work.when_done(lambda: print("done"))
        done
        """

    def is_done(self) -> bool:
        """
        Whether it is done.

        >>> ops = onesum.ReductionToOneDevice()
        >>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
        >>> work.wait(); work.is_done()
        True
        """

    def results(self) -> list[Mirrored]:
        """
        Waits; empty for calls into the caller's memory.

        >>> ops = onesum.ReductionToOneDevice()
        >>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
        >>> len(work.results())
        1
        """

    def __await__(self) -> Generator[Any, None, list[Mirrored]]: ...

class PreparedReduce:
    """
    A reduction, or another Collective, that runs again and again on the same arrays.

    >>> ops = onesum.ReductionToOneDevice()
    >>> a, b = np.ones(2), np.ones(2)
    >>> value = onesum.PerReplica([a, b])
    >>> prepared = ops.prepare(onesum.ReduceOp.SUM, [value], [value])
    >>> prepared.run(); prepared.run()
    >>> a
    array([4., 4.])
    """

    def run(self) -> None:
        """
        Runs it.

        >>> a, b = np.ones(2), np.ones(2)
        >>> onesum.ReductionToOneDevice().prepare(onesum.ReduceOp.SUM, [[a, b]], [[a, b]]).run()
        """

    def start(self) -> Work:
        """
        Runs it without waiting.

        >>> a, b = np.ones(2), np.ones(2)
        >>> work = onesum.ReductionToOneDevice().prepare(onesum.ReduceOp.SUM, [[a, b]], [[a, b]]).start()
        >>> work.wait()
        """

class CallReport:
    """
    What one call did.

    >>> ops = onesum.ReductionToOneDevice()
    >>> ops.last_call.number
    0
    >>> ops.reduce(onesum.ReduceOp.SUM, [np.ones(2), np.ones(2)], "CPU:0").numpy()
    array([2., 2.])
    >>> ops.last_call.algorithm, ops.last_call.bytes
    ('one_device', 16)
    """

    @property
    def number(self) -> int:
        """Of the call on its object, from 1; 0: none yet."""

    @property
    def algorithm(self) -> str: ...

    @property
    def tensors(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Of one replica of everything that was reduced."""

    @property
    def time(self) -> datetime.timedelta: ...

    @property
    def waited(self) -> datetime.timedelta:
        """Of that, how long this worker waited for others."""

    @property
    def waited_for(self) -> int:
        """The rank that it waited for longest; -1: nobody."""

    def __repr__(self) -> str: ...

class CrossDeviceOps:
    """
    Reductions and other collectives across the devices of a cluster.

    The classes differ in their policy. Inputs are never modified, except where they are passed as results. Objects
    may be used from several threads; calls on one cluster run one after the other. Calls release the GIL, and
    Ctrl-C ends those that wait for other workers.

    >>> isinstance(onesum.NcclAllReduce(), onesum.CrossDeviceOps)
    True
    """

    def reduce(self, op: ReduceOp, value: onesum.typing.PerReplicaLike, destination: onesum.typing.DestinationLike, options: CommunicationOptions | None = None) -> Mirrored:
        """
        The sum or mean (or what else the operation is) of all replicas, on every device of the destination.

        value        the replicas: a list of arrays (on CPU:0, CPU:1, …), a PerReplica, a variable
        destination  where results go: a device such as "CPU:0", or a value or variable, on whose devices they are then

        >>> ops = onesum.ReductionToOneDevice()
        >>> value = onesum.PerReplica([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        >>> ops.reduce(onesum.ReduceOp.MEAN, value, "CPU:0").numpy()
        array([2., 3.])
        """

    def batch_reduce(self, op: ReduceOp, pairs: Sequence[onesum.typing.PairLike], options: CommunicationOptions | None = None) -> list[Mirrored]:
        """
        The same for many values at once; results in the order of the pairs (value, destination).

        >>> ops = onesum.ReductionToOneDevice()
        >>> pairs = [([np.ones(2), np.ones(2)], "CPU:0"), ([np.arange(3), np.arange(3)], "CPU:1")]
        >>> [result.numpy().tolist() for result in ops.batch_reduce(onesum.ReduceOp.SUM, pairs)]
        [[2.0, 2.0], [0, 2, 4]]
        """

    def broadcast(self, value: onesum.typing.ValueLike, destination: onesum.typing.DestinationLike, root: int = 0) -> Mirrored:
        """
        Copies of the root's value on every device of the destination.

        >>> ops = onesum.ReductionToOneDevice()
        >>> ops.broadcast(np.arange(3), "CPU:1").tensor()
        Tensor(int64[3] on /job:localhost/replica:0/task:0/device:CPU:1)
        """

    def gather(self, value: onesum.typing.PerReplicaLike, destination: onesum.typing.DestinationLike, axis: int, options: CommunicationOptions | None = None) -> Mirrored:
        """
        All replicas concatenated along `axis` in replica order.

        >>> ops = onesum.ReductionToOneDevice()
        >>> ops.gather([np.zeros(1), np.ones(2)], "CPU:0", axis=0).numpy()
        array([0., 1., 1.])
        """

    def reduce_into(self, op: ReduceOp, value: onesum.typing.PerReplicaLike, result: onesum.typing.PerReplicaLike, options: CommunicationOptions | None = None) -> None:
        """
        A reduction into arrays the caller has, which may be the value.

        >>> a, b = np.ones(2), np.ones(2)
        >>> onesum.ReductionToOneDevice().reduce_into(onesum.ReduceOp.SUM, [a, b], [a, b])
        >>> a, b
        (array([2., 2.]), array([2., 2.]))
        """

    def batch_reduce_into(self, op: ReduceOp, values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], options: CommunicationOptions | None = None) -> None:
        """
        The same for many. results[i] has an array for each destination device.

        >>> a, b, total = np.ones(2), np.ones(2), np.zeros(2)
        >>> onesum.ReductionToOneDevice().batch_reduce_into(onesum.ReduceOp.SUM, [[a, b]], [[total]])
        >>> total
        array([2., 2.])
        """

    def batch_reduce_async(self, op: ReduceOp, pairs: Sequence[onesum.typing.PairLike], options: CommunicationOptions | None = None) -> Work:
        """
        batch_reduce without waiting. Works run in call order.

        >>> ops = onesum.ReductionToOneDevice()
        >>> work = ops.batch_reduce_async(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")])
        >>> work.results()[0].numpy()
        array([2., 2.])
        """

    @overload
    def prepare(self, op: ReduceOp, values: Sequence[onesum.typing.PerReplicaLike], results: Sequence[onesum.typing.PerReplicaLike], options: CommunicationOptions | None = None) -> PreparedReduce:
        """
        batch_reduce_into, validated and planned once, to run again and again on the same arrays.

        >>> a, b = np.ones(2), np.ones(2)
        >>> onesum.ReductionToOneDevice().prepare(onesum.ReduceOp.SUM, [[a, b]], [[a, b]]).run()
        >>> a
        array([2., 2.])
        """

    @overload
    def prepare(self, call: Collective, options: CommunicationOptions | None = None) -> PreparedReduce:
        """
        A Collective, validated and planned once, to run again and again on the same arrays.

        >>> a, b = np.ones(2), np.zeros(2)
        >>> prepared = onesum.ReductionToOneDevice().prepare(onesum.Collective.broadcast([a], [b]))
        >>> prepared.run(); a[0] = 7; prepared.run()
        >>> b
        array([7., 1.])
        """

    def run(self, call: Collective, options: CommunicationOptions | None = None) -> None:
        """
        A Collective, into arrays the caller has.

        >>> a, b, whole = np.zeros(1), np.ones(2), np.empty(3)
        >>> onesum.ReductionToOneDevice().run(onesum.Collective.all_gather([[a, b]], [whole]))
        >>> whole
        array([0., 1., 1.])
        """

    def start(self, call: Collective, options: CommunicationOptions | None = None) -> Work:
        """
        The same without waiting. Works run in call order.

        >>> a, b = np.zeros(2), np.zeros(2)
        >>> work = onesum.ReductionToOneDevice().start(onesum.Collective.broadcast([np.ones(2)], [[a, b]]))
        >>> work.wait()
        >>> b
        array([1., 1.])
        """

    @overload
    def plan(self, op: ReduceOp, pairs: onesum.typing.PlannedLike, in_place: bool = False, options: CommunicationOptions | None = None) -> Plan:
        """
        What a call would do, without doing it: of pairs, or of ReduceSpecs, which need no memory.

        >>> ops = onesum.ReductionToOneDevice()
        >>> ops.plan(onesum.ReduceOp.SUM, [([np.ones(2), np.ones(2)], "CPU:0")]).order
        'canonical'
        """

    @overload
    def plan(self, call: Collective, options: CommunicationOptions | None = None) -> Plan:
        """
        The same of a Collective.

        >>> call = onesum.Collective.all_gather([[np.ones(2), np.ones(2)]], [np.empty(4)])
        >>> onesum.ReductionToOneDevice().plan(call).verify()
        """

    @overload
    def plan(self, spec: CollectiveSpec, options: CommunicationOptions | None = None) -> Plan:
        """
        The same of a CollectiveSpec, which needs no memory.

        >>> tensor = onesum.ReduceSpec("float32", 6, ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"])
        >>> spec = onesum.CollectiveSpec(onesum.CollectiveKind.REDUCE_SCATTER, tensor)
        >>> onesum.ReductionToOneDevice().plan(spec).verify()
        """

    @overload
    def explain(self, op: ReduceOp, pairs: onesum.typing.PlannedLike, in_place: bool = False, options: CommunicationOptions | None = None) -> str:
        """
        Why, in words.

        >>> ops = onesum.AllReduceCrossDeviceOps("auto")
        >>> value = onesum.PerReplica([np.ones(2), np.ones(2)])
        >>> print(ops.explain(onesum.ReduceOp.SUM, [(value, value)]))  # doctest: +ELLIPSIS
        1 tensor...
        """

    @overload
    def explain(self, call: Collective, options: CommunicationOptions | None = None) -> str:
        """
        The same of a Collective.

        >>> call = onesum.Collective.all_gather([[np.ones(2), np.ones(2)]], [np.empty(4)])
        >>> print(onesum.ReductionToOneDevice().explain(call))  # doctest: +ELLIPSIS
        1 tensor...
        """

    @overload
    def explain(self, spec: CollectiveSpec, options: CommunicationOptions | None = None) -> str:
        """
        The same of a CollectiveSpec.

        >>> tensor = onesum.ReduceSpec("float32", 6, ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"])
        >>> spec = onesum.CollectiveSpec(onesum.CollectiveKind.ALL_TO_ALL, tensor)
        >>> print(onesum.ReductionToOneDevice().explain(spec))  # doctest: +ELLIPSIS
        1 tensor...
        """

    @property
    def last_call(self) -> CallReport:
        """The last call that completed on this object."""

    @property
    def cluster(self) -> Cluster: ...

class ReductionToOneDevice(CrossDeviceOps):
    """
    Sums on one device, then copies.

    reduce_to_device  where the sum is formed; None: the first device of each destination
    accumulation_fn   gets the components of a dense value, in replica order, and returns their sum

    >>> def largest(tensors):
    ...     return np.max([tensor.numpy() for tensor in tensors], axis=0)
    >>> ops = onesum.ReductionToOneDevice(accumulation_fn=largest)
    >>> ops.reduce(onesum.ReduceOp.SUM, [np.array([1.0, 5.0]), np.array([3.0, 2.0])], "CPU:0").numpy()
    array([3., 5.])
    """

    def __init__(self, reduce_to_device: str | None = None, accumulation_fn: onesum.typing.AccumulationFn | None = None, cluster: Cluster | None = None) -> None: ...

class AllReduceSpec:
    """
    One line of a list: tensors of at most `limit` bytes.

    Tuples are taken wherever one is.

    >>> onesum.AllReduceSpec("pscpu/pscpu", 2, -1)
    AllReduceSpec('pscpu/pscpu', 2, -1)
    """

    def __init__(self, alg: str, shards: int = 1, limit: int = -1) -> None: ...

    @property
    def alg(self) -> str: ...

    @property
    def shards(self) -> int: ...

    @property
    def limit(self) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class AllReduceSpecs:
    """
    Which algorithm takes which tensors, always valid.

    Text, one (algorithm, shards, limit) or a sequence of these are taken wherever one is.

    >>> print(onesum.AllReduceSpecs([("nccl", 2, 1024), ("pscpu/pscpu", 2, -1)]))
    nccl#2:1k:pscpu/pscpu#2
    >>> onesum.AllReduceSpecs("pscpu:2k:xring").values[0].limit
    2048
    """

    def __init__(self, specs: onesum.typing.AllReduceSpecsLike) -> None: ...

    @property
    def values(self) -> list[AllReduceSpec]: ...

    def to_string(self) -> str:
        """
        The text, which reads back.

        >>> onesum.AllReduceSpecs("xring").to_string()
        'xring'
        """

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

class AllReduceCrossDeviceOps(CrossDeviceOps):
    """
    One algorithm for all tensors.

    all_reduce_alg             "nccl", "hierarchical_copy", "xring", "nccl/rechd", "auto", …
    num_packs                  the dense tensors of a batch are cut into so many packs; 0: none of this
    agg_small_grads_max_bytes  tensors up to this are grouped,
    agg_small_grads_max_group  at most so many to a pack

    >>> ops = onesum.AllReduceCrossDeviceOps("xring")
    >>> value = onesum.PerReplica([np.ones(2), np.ones(2)])
    >>> ops.reduce(onesum.ReduceOp.SUM, value, value).tensor(1).numpy()
    array([2., 2.])
    """

    def __init__(self, all_reduce_alg: str = 'nccl', num_packs: int = 1, agg_small_grads_max_bytes: int = 0, agg_small_grads_max_group: int = 10, cluster: Cluster | None = None) -> None: ...

class NcclAllReduce(AllReduceCrossDeviceOps):
    """
    NCCL where it serves the devices.

    >>> onesum.NcclAllReduce(num_packs=2).cluster.size
    1
    """

    def __init__(self, num_packs: int = 1, cluster: Cluster | None = None) -> None: ...

class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """
    Sums in two halves of the devices, then across.

    >>> value = onesum.PerReplica([np.ones(2), np.ones(2)])
    >>> onesum.HierarchicalCopyAllReduce().reduce(onesum.ReduceOp.SUM, value, value).tensor(0).numpy()
    array([2., 2.])
    """

    def __init__(self, num_packs: int = 1, cluster: Cluster | None = None) -> None: ...

class MultiWorkerAllReduce(AllReduceCrossDeviceOps):
    """
    Algorithms by the size of tensors, over several workers.

    worker_devices       "/job:worker/task:0", … all different, in rank order
    num_gpus_per_worker  devices of each worker, of the type that values are on; 0: one CPU
    all_reduce_spec      text, a line or a sequence of lines: which algorithm takes which tensors
    cluster              its workers must be just these; None: the environment's, or they are in this process

    >>> workers = ["/job:worker/task:0", "/job:worker/task:1"]
    >>> ops = onesum.MultiWorkerAllReduce(workers, 1, all_reduce_spec=("pscpu/pscpu", 2, -1), num_packs=0)
    >>> value = onesum.PerReplica([np.ones(2), np.ones(2)], [worker + "/device:CPU:0" for worker in workers])
    >>> ops.reduce(onesum.ReduceOp.SUM, value, value).tensor(0).numpy()
    array([2., 2.])
    """

    def __init__(self, worker_devices: Sequence[onesum.typing.DeviceLike], num_gpus_per_worker: int, all_reduce_spec: onesum.typing.AllReduceSpecsLike = ('pscpu/pscpu', 2, -1), num_packs: int = 0, agg_small_grads_max_bytes: int = 0, agg_small_grads_max_group: int = 10, cluster: Cluster | None = None) -> None: ...

class PointToPoint:
    """
    Messages from one worker process to another.

    The kth send to a worker with a tag is what its kth recv from this one with that tag gets. Messages of different
    workers, directions and tags do not wait for each other, nor for the calls on the cluster. The first failure on
    such a way ends it. Of the options the timeout counts.

    >>> cluster = onesum.Cluster.from_environment()  # of two workers
    >>> messages, other = onesum.PointToPoint(cluster), 1 - cluster.rank
    >>> array = np.empty(2, int)
    >>> work = messages.start_recv(array, from_=other)
    >>> messages.send(np.full(2, cluster.rank), to=other)
    >>> work.wait()
    >>> array[0] == other
    np.True_
    """

    def __init__(self, cluster: Cluster) -> None: ...

    def send(self, tensor: onesum.typing.ArrayLike, to: int, tag: int = 0, options: CommunicationOptions | None = None) -> None:
        """
        Returns when the array may be used again. The first one on a way waits for its recv.

        >>> cluster = onesum.Cluster.from_environment()
        >>> messages, array = onesum.PointToPoint(cluster), np.full(2, cluster.rank)
        >>> if cluster.rank == 0:
        ...     messages.send(array, to=1)
        ... else:
        ...     messages.recv(array, from_=0)
        >>> array
        array([0, 0])
        """

    def recv(self, tensor: onesum.typing.ArrayLike, from_: int, tag: int = 0, options: CommunicationOptions | None = None) -> None:
        """
        Waits for its send, of the same type and number of elements, and writes it into the array.

        >>> cluster = onesum.Cluster.from_environment()
        >>> messages, array = onesum.PointToPoint(cluster), np.full(2, cluster.rank)
        >>> if cluster.rank == 0:
        ...     messages.recv(array, from_=1, tag=7)
        ... else:
        ...     messages.send(array, to=0, tag=7)
        >>> array
        array([1, 1])
        """

    def start_send(self, tensor: onesum.typing.ArrayLike, to: int, tag: int = 0, options: CommunicationOptions | None = None) -> Work:
        """
        send without waiting.

        >>> cluster = onesum.Cluster.from_environment()
        >>> messages, other = onesum.PointToPoint(cluster), 1 - cluster.rank
        >>> array = np.empty(2, int)
        >>> work = messages.start_send(np.full(2, cluster.rank), to=other)
        >>> messages.recv(array, from_=other)
        >>> work.wait()
        >>> array[0] == other
        np.True_
        """

    def start_recv(self, tensor: onesum.typing.ArrayLike, from_: int, tag: int = 0, options: CommunicationOptions | None = None) -> Work:
        """
        recv without waiting.

        >>> cluster = onesum.Cluster.from_environment()
        >>> messages, other = onesum.PointToPoint(cluster), 1 - cluster.rank
        >>> array = np.empty(2, int)
        >>> work = messages.start_recv(array, from_=other)
        >>> messages.send(np.full(2, cluster.rank), to=other)
        >>> work.wait()
        >>> array[0] == other
        np.True_
        """

class ReplicaContext:
    """
    One replica of a MirroredStrategy.run.

    all_reduce and merge_call are made by all replicas together, in the same order.

    >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> ids = strategy.run(lambda replica: np.array([replica.replica_id, replica.num_replicas]))
    >>> [value.numpy().tolist() for value in ids]
    [[0, 2], [1, 2]]
    """

    @property
    def replica_id(self) -> int: ...

    @property
    def num_replicas(self) -> int: ...

    @property
    def device(self) -> Device: ...

    @property
    def strategy(self) -> MirroredStrategy: ...

    @overload
    def all_reduce(self, op: ReduceOp, value: onesum.typing.ArrayLike, options: CommunicationOptions | None = None) -> Tensor:
        """
        The sum or mean over all replicas, the same on each: of a value, or of a list in one batch.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step(replica):
        ...     total, mean = replica.all_reduce(onesum.ReduceOp.SUM, [np.ones(2), np.arange(2)])
        ...     return total
        >>> strategy.run(step).tensor(0).numpy()
        array([2., 2.])
        """

    @overload
    def all_reduce(self, op: ReduceOp, value: IndexedSlices, options: CommunicationOptions | None = None) -> IndexedSlices: ...

    @overload
    def all_reduce(self, op: ReduceOp, value: Sequence[onesum.typing.ValueLike], options: CommunicationOptions | None = None) -> list[Tensor | IndexedSlices]: ...

    def merge_call(self, fn: onesum.typing.MergeFn, args: Sequence[onesum.typing.ValueLike] = ()) -> Any:
        """
        Calls replica 0's fn(strategy, *args) once, in cross-replica context, while all replicas wait.

        Each argument is a PerReplica then. Of each value that fn returns the replica gets the component on its device,
        or the only one there is.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def merge(strategy, value):
        ...     return strategy.extended.reduce_to(onesum.ReduceOp.SUM, value, value)
        >>> strategy.run(lambda replica: replica.merge_call(merge, (np.ones(2),))).tensor(1).numpy()
        array([2., 2.])
        """

class StrategyExtended:
    """
    Reductions and broadcasts of a strategy, in cross-replica context.

    >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.extended.reduce_to(onesum.ReduceOp.SUM, [np.ones(2), np.ones(2)], "CPU:0").numpy()
    array([2., 2.])
    """

    def reduce_to(self, op: ReduceOp, value: onesum.typing.PerReplicaLike, destination: onesum.typing.DestinationLike, options: CommunicationOptions | None = None) -> Mirrored:
        """
        CrossDeviceOps.reduce.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.extended.reduce_to(onesum.ReduceOp.MEAN, [np.ones(2), np.ones(2)], "CPU:1").numpy()
        array([1., 1.])
        """

    def batch_reduce_to(self, op: ReduceOp, pairs: Sequence[onesum.typing.PairLike], options: CommunicationOptions | None = None) -> list[Mirrored]:
        """
        CrossDeviceOps.batch_reduce.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> pairs = [([np.ones(2), np.ones(2)], "CPU:0")]
        >>> strategy.extended.batch_reduce_to(onesum.ReduceOp.SUM, pairs)[0].numpy()
        array([2., 2.])
        """

    def broadcast_to(self, value: onesum.typing.ValueLike, destination: onesum.typing.DestinationLike) -> Mirrored:
        """
        CrossDeviceOps.broadcast.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.extended.broadcast_to(np.ones(2), "CPU:1").numpy()
        array([1., 1.])
        """

class StrategyScope:
    """
    The life of a strategy's scope, for `with`.

    >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> with strategy.scope() as same:
    ...     same is strategy
    True
    """

    def __enter__(self) -> MirroredStrategy: ...

    def __exit__(self, *args: object) -> None: ...

class MirroredStrategy:
    """
    One replica of the work per device, variables mirrored on all.

    devices           one replica each, in this order; None: the GPUs, or a CPU device for each core
    cross_device_ops  None: ReductionToOneDevice()

    >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"], onesum.HierarchicalCopyAllReduce())
    >>> losses = strategy.run(lambda replica: np.array([float(replica.replica_id)]))
    >>> strategy.reduce(onesum.ReduceOp.MEAN, losses).numpy()
    array([0.5])
    """

    def __init__(self, devices: Sequence[onesum.typing.DeviceLike] | None = None, cross_device_ops: CrossDeviceOps | None = None) -> None: ...

    @property
    def num_replicas(self) -> int: ...

    @property
    def devices(self) -> list[Device]: ...

    @property
    def cross_device_ops(self) -> CrossDeviceOps: ...

    @property
    def extended(self) -> StrategyExtended: ...

    def scope(self) -> StrategyScope:
        """
        Variables that this thread makes inside it are mirrored on the strategy's devices.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> with strategy.scope():
        ...     onesum.Variable("weights", np.zeros(2)).is_mirrored()
        True
        """

    def run(self, fn: onesum.typing.ReplicaFn) -> PerReplica | None:
        """
        Calls fn(replica) once per replica, each on a thread of its own.

        What the replicas return (arrays are on their own devices) is a PerReplica; None if they return nothing. If some
        raise, the error of the lowest one is raised.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step(replica):
        ...     return replica.all_reduce(onesum.ReduceOp.SUM, np.ones(2))
        >>> strategy.run(step).tensor(1).numpy()
        array([2., 2.])
        """

    def reduce(self, op: ReduceOp, value: onesum.typing.PerReplicaLike, options: CommunicationOptions | None = None) -> Mirrored:
        """
        The sum or mean of all replicas, on the host.

        >>> strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.reduce(onesum.ReduceOp.SUM, [np.ones(2), np.ones(2)]).numpy()
        array([2., 2.])
        """
