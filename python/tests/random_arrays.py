"""Random arrays of every type, and what it means for two to be the same."""

import numpy as np
from reference import BFLOAT16

INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")]
DTYPES = INTEGERS + FLOATS + [BFLOAT16]


def random_array(rng, dtype, shape):
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    scales = 2.0 ** rng.integers(-6, 6, shape)
    numbers = rng.standard_normal(shape) * scales
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape) * scales
    return np.asarray(numbers).astype(dtype)


def same_bits(found, expected):
    """But for those of NaNs, which are open (docs/semantics.md, 3.8)."""
    found, expected = np.array(found), np.array(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.kind not in "biu":
        are_nan = np.isnan(expected)
        assert (np.isnan(found) == are_nan).all()
        found[are_nan] = expected[are_nan] = 0
    assert found.tobytes() == expected.tobytes()
