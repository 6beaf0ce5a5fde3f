"""What the operations beside sum and mean should give, by NumPy alone, and which types have them."""

import numpy as np
from reference import accumulator

import onesum

Op = onesum.ReduceOp
BITS = {Op.BIT_AND: np.bitwise_and, Op.BIT_OR: np.bitwise_or, Op.BIT_XOR: np.bitwise_xor}


def is_taken(op, dtype):
    """docs/semantics.md, 3.11."""
    if dtype.kind == "b":
        return op not in (Op.SUM, Op.MEAN)
    if dtype.kind == "c":
        return op in (Op.SUM, Op.MEAN, Op.PRODUCT)
    return dtype.kind in "iu" or op not in BITS


def product(a, b):
    """Complex numbers by four products, each operation rounded: NumPy may fuse them."""
    if a.dtype.kind != "c":
        return np.multiply(a, b)
    whole = np.empty_like(a)
    whole.real = a.real * b.real - a.imag * b.imag
    whole.imag = a.real * b.imag + a.imag * b.real
    return whole


def extreme(a, b, is_min):
    """A NaN stays one, and -0 is less than +0, which NumPy leaves open."""
    found = np.minimum(a, b) if is_min else np.maximum(a, b)
    if a.dtype.kind in "biu":
        return found
    is_equal = a == b
    one_is_negative = np.signbit(a) | np.signbit(b) if is_min else np.signbit(a) & np.signbit(b)
    return np.where(is_equal, np.where(one_is_negative, -np.abs(a), np.abs(a)), found).astype(a.dtype)


def of_two(op):
    if op is Op.PRODUCT:
        return product
    if op in (Op.MIN, Op.MAX):
        return lambda a, b: extreme(a, b, op is Op.MIN)
    return BITS[op]


def tree(parts, join):
    """The canonical order, which splits n at the largest power of two below n."""
    if len(parts) == 1:
        return parts[0]
    left = 1 << ((len(parts) - 1).bit_length() - 1)
    return join(tree(parts[:left], join), tree(parts[left:], join))


def combined(arrays, op):
    """The arrays of all replicas by an operation other than sum and mean, to the bit (of NaNs but for that)."""
    dtype = arrays[0].dtype
    inner = accumulator(dtype) if op is Op.PRODUCT else dtype
    parts = [np.atleast_1d(array).astype(inner) for array in arrays]
    return tree(parts, of_two(op)).astype(dtype).reshape(arrays[0].shape)
