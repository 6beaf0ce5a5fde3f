"""Sums and means by NumPy, compared bit by bit with those of onesum.

    numpy_reference.py FOLDER

FOLDER/cases has a line `dtype op replicas elements` per case; FOLDER/inputs the replicas of all cases one after the
other, FOLDER/results the results. A line `dtype op replicas elements rows …` is a sparse case whose duplicate rows are
merged: so many rows of each replica, of so many elements; a replica, and a result, is int64 indices and then values. Prints how many cases are equal, or the first differences, and then fails.
"""
import functools
import pathlib
import sys

import numpy as np

INTEGERS = {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"}


def storage(dtype):
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def tree(parts, add):
    """The sum in canonical order: the tree splits n at the largest power of two below n. None is nobody's part."""
    if len(parts) == 1:
        return parts[0]
    left = 1
    while 2 * left < len(parts):
        left *= 2
    sides = [tree(parts[:left], add), tree(parts[left:], add)]
    there = [side for side in sides if side is not None]
    return add(*there) if len(there) == 2 else there[0] if there else None


def bfloat16_to_float32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def float32_to_bfloat16(numbers):
    bits = numbers.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(numbers), 0x7FC0, rounded).astype(np.uint16)


def integer_mean(terms, replicas):
    """Exact in Python's integers, rounded once to the result's type, and then divided."""
    result = np.float32 if terms[0].dtype.itemsize <= 2 else np.float64
    columns = zip(*(term.tolist() for term in terms))
    return np.array([float(sum(column)) for column in columns], dtype=result) / result(replicas)


def reduce(dtype, op, replicas):
    """Of each replica, the terms it brings: one, or none or more of a row of a sparse value."""
    if dtype in INTEGERS and op == "mean":
        return integer_mean([term for terms in replicas for term in terms], len(replicas))
    load, store = (lambda x: x), (lambda x: x)
    if dtype == "float16":
        load, store = (lambda x: x.astype(np.float32)), (lambda x: x.astype(np.float16))
    elif dtype == "bfloat16":
        load, store = bfloat16_to_float32, float32_to_bfloat16
    sums = [functools.reduce(np.add, map(load, terms)) if terms else None for terms in replicas]
    total = tree(sums, np.add)
    if op == "mean" and len(replicas) > 1:
        parts = total.view(total.real.dtype)
        total = (parts / parts.dtype.type(len(replicas))).view(total.dtype)
    return store(total)


def merge(dtype, op, replicas):
    """Each index once, and its row. A replica is its indices and its rows."""
    indices = np.unique(np.concatenate([indices for indices, _ in replicas]))
    rows = []
    for index in indices:
        rows.append(reduce(dtype, op, [list(values[own == index]) for own, values in replicas]))
    return indices, np.concatenate(rows)


def differences(dtype, found, expected):
    if dtype == "bfloat16":
        numbers = bfloat16_to_float32(found), bfloat16_to_float32(expected)
    elif np.iscomplexobj(expected):
        numbers = found.view(found.real.dtype), expected.view(expected.real.dtype)
        found, expected = numbers
    else:
        numbers = found, expected
    bits = np.dtype(f"uint{8 * expected.dtype.itemsize}")
    differ = found.view(bits) != expected.view(bits)
    return np.flatnonzero(differ & ~(np.isnan(numbers[0]) & np.isnan(numbers[1])))


class Reader:
    def __init__(self, path):
        self.bytes, self.at = path.read_bytes(), 0

    def take(self, dtype, count):
        found = np.frombuffer(self.bytes, dtype, count, self.at)
        self.at += found.nbytes
        return found

    def left(self):
        return len(self.bytes) - self.at


def main(folder):
    np.seterr(all="ignore")
    inputs, results = Reader(folder / "inputs"), Reader(folder / "results")
    cases = wrong = 0
    for line in (folder / "cases").read_text().splitlines():
        dtype, op, *numbers = line.split()
        replicas, elements, *rows = map(int, numbers)
        if rows:
            own = [(inputs.take("int64", n), inputs.take(storage(dtype), n * elements)) for n in rows]
            indices, expected = merge(dtype, op, [(i, v.reshape(-1, elements)) for i, v in own])
            same_indices = np.array_equal(results.take("int64", indices.size), indices)
        else:
            expected = reduce(dtype, op, [[inputs.take(storage(dtype), elements)] for _ in range(replicas)])
            same_indices = True
        found = results.take(expected.dtype, expected.size)
        where = differences(dtype, found, expected)
        cases += 1
        if where.size or not same_indices:
            wrong += 1
            print(f"{line}: {where.size} differ" + ("" if same_indices else ", and so do the indices"))
        if where.size:
            first = where[0]
            print(f"  the first at {first}: {found.flat[first]}, NumPy: {expected.flat[first]}")
    if inputs.left() or results.left():
        sys.exit(f"{inputs.left()} input and {results.left()} result bytes are left over")
    if wrong:
        sys.exit(f"{wrong} of {cases} cases differ")
    print(f"{cases} cases equal")


main(pathlib.Path(sys.argv[1]))
