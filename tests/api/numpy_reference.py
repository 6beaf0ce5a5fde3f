"""Sums and means by NumPy, compared bit by bit with those of onesum.

    numpy_reference.py FOLDER

FOLDER/cases has a line `dtype op replicas elements` per case; FOLDER/inputs the replicas of all cases one after the
other, FOLDER/results the results. Prints how many cases are equal, or the first differences, and then fails.
"""
import pathlib
import sys

import numpy as np

INTEGERS = {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"}


def storage(dtype):
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def tree(parts, add):
    """The sum in canonical order: the tree splits n at the largest power of two below n."""
    if len(parts) == 1:
        return parts[0]
    left = 1
    while 2 * left < len(parts):
        left *= 2
    return add(tree(parts[:left], add), tree(parts[left:], add))


def bfloat16_to_float32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def float32_to_bfloat16(numbers):
    bits = numbers.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(numbers), 0x7FC0, rounded).astype(np.uint16)


def integer_mean(replicas):
    """Exact in Python's integers, rounded once to the result's type, and then divided."""
    result = np.float32 if replicas[0].dtype.itemsize <= 2 else np.float64
    columns = zip(*(replica.tolist() for replica in replicas))
    return np.array([float(sum(column)) for column in columns], dtype=result) / result(len(replicas))


def reduce(dtype, op, replicas):
    if dtype in INTEGERS:
        return integer_mean(replicas) if op == "mean" else tree(replicas, np.add)
    load, store = (lambda x: x), (lambda x: x)
    if dtype == "float16":
        load, store = (lambda x: x.astype(np.float32)), (lambda x: x.astype(np.float16))
    elif dtype == "bfloat16":
        load, store = bfloat16_to_float32, float32_to_bfloat16
    total = tree([load(replica) for replica in replicas], np.add)
    if op == "mean" and len(replicas) > 1:
        parts = total.view(total.real.dtype)
        total = (parts / parts.dtype.type(len(replicas))).view(total.dtype)
    return store(total)


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


def main(folder):
    np.seterr(all="ignore")
    inputs = (folder / "inputs").read_bytes()
    results = (folder / "results").read_bytes()
    at_input = at_result = cases = wrong = 0
    for line in (folder / "cases").read_text().splitlines():
        dtype, op, replicas, elements = line.split()
        replicas, elements = int(replicas), int(elements)
        values = []
        for _ in range(replicas):
            values.append(np.frombuffer(inputs, storage(dtype), elements, at_input))
            at_input += elements * storage(dtype).itemsize
        expected = reduce(dtype, op, values)
        found = np.frombuffer(results, expected.dtype, elements, at_result)
        at_result += elements * expected.dtype.itemsize
        where = differences(dtype, found, expected)
        cases += 1
        if where.size:
            wrong += 1
            first = where[0]
            print(f"{line}: {where.size} differ, the first at {first}: {found.flat[first]}, NumPy: {expected.flat[first]}")
    if at_input != len(inputs) or at_result != len(results):
        sys.exit(f"{len(inputs) - at_input} input and {len(results) - at_result} result bytes are left over")
    if wrong:
        sys.exit(f"{wrong} of {cases} cases differ")
    print(f"{cases} cases equal")


main(pathlib.Path(sys.argv[1]))
