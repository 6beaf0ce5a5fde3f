"""What collectives should give, by NumPy, and tensors whose sums are exact in every type."""

from __future__ import annotations

import functools

import numpy as np
import torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]  # gloo has none of them
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
MOVED = [torch.float8_e4m3fn, torch.complex32]  # of which there are no sums
ALL = [torch.bool, *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX]

GLOO_REDUCES = [torch.bool, *(t for t in INTEGERS if t != torch.int16), *FLOATS, *COMPLEX]

_ACCUMULATED = {torch.float16: np.float64, torch.bfloat16: np.float64, torch.float32: np.float64}
_FUNCTIONS = {
    "SUM": np.add,
    "AVG": np.add,
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}


def operations(dtype: torch.dtype) -> list[str]:
    names = ["SUM", "PRODUCT", "MIN", "MAX"]
    if dtype.is_complex:
        return ["SUM", "AVG"]  # all that torch.distributed lets through
    if dtype.is_floating_point:
        return [*names, "AVG"]
    return [*names, "BAND", "BOR", "BXOR"]


def values(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Small whole numbers: exact in all types, also their sums and products of a few."""
    random = np.random.default_rng(seed)
    whole = torch.from_numpy(random.integers(0, 3, shape, dtype=np.int64))
    if dtype == torch.complex32:
        return whole.to(torch.complex64).to(dtype)
    if dtype.is_complex:
        return torch.complex(whole.double(), torch.from_numpy(random.integers(0, 3, shape)).double()).to(dtype)
    return whole.to(dtype)


def reduced(op: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    dtype = tensors[0].dtype
    if tensors[0].numel() == 0:
        return tensors[0].clone()
    if dtype.is_complex:  # sums and means, part by part
        return torch.view_as_complex(reduced(op, [torch.view_as_real(tensor) for tensor in tensors]))
    if dtype in _ACCUMULATED:
        arrays = [tensor.double().numpy() for tensor in tensors]
    else:
        arrays = [tensor.numpy() for tensor in tensors]
    if dtype == torch.bool:
        op = {"SUM": "BOR", "PRODUCT": "BAND"}.get(op, op)
    result = functools.reduce(_FUNCTIONS[op], arrays)
    if op == "AVG":
        result = result / len(arrays)
    return torch.from_numpy(np.asarray(result)).to(dtype).reshape(tensors[0].shape)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """To the bit."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.numel() == 0:
        return True
    left, right = left.detach().contiguous().reshape(-1), right.detach().contiguous().reshape(-1)
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))
