"""What arguments may be, for type checkers and readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    import numpy as np

    import onesum

    Array = np.ndarray[Any, Any]
    NumpyDType = np.dtype[Any]
else:
    Array = NumpyDType = Any


class SupportsDLPack(Protocol):
    """An array of any library that speaks DLPack."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


ArrayLike = Union["onesum.Tensor", "np.ndarray[Any, Any]", "np.generic", SupportsDLPack]
DTypeLike = Union["onesum.DType", "np.dtype[Any]", type[Any], str]
ShapeLike = Union["onesum.Shape", int, Sequence[int]]
DeviceLike = Union["onesum.Device", str]
ValueLike = Union[ArrayLike, "onesum.IndexedSlices", "onesum.Mirrored"]
PerReplicaLike = Union[
    "onesum.PerReplica", "onesum.Mirrored", "onesum.Variable", ValueLike, Sequence[ValueLike]
]
DestinationLike = Union[
    "onesum.Destination",
    "onesum.DistributedValues",
    "onesum.Variable",
    "onesum.Tensor",
    "onesum.IndexedSlices",
    "onesum.Device",
    str,
]
PairLike = Union["onesum.ValueDestination", tuple[PerReplicaLike, DestinationLike]]
PlannedLike = Union[Sequence[PairLike], Sequence["onesum.ReduceSpec"]]
_SpecLine = Union["onesum.AllReduceSpec", tuple[str, int, int], tuple[str, int], tuple[str]]
AllReduceSpecsLike = Union["onesum.AllReduceSpecs", str, _SpecLine, Sequence[_SpecLine]]
AccumulationFn = Callable[[list["onesum.Tensor"]], ArrayLike]
ReplicaFn = Callable[["onesum.ReplicaContext"], Union[ValueLike, None]]
MergeFn = Callable[..., Any]
