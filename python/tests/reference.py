"""What reductions should give, by NumPy alone: the canonical order, and any plan read from its text."""

import re
from collections import deque

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BFLOAT16)


def accumulator(dtype):
    return np.dtype(np.float32) if dtype in HALVES else np.dtype(dtype)


def canonical(parts):
    """The sum by the tree that splits n at the largest power of two below n."""
    if len(parts) == 1:
        return parts[0]
    left = 1 << ((len(parts) - 1).bit_length() - 1)
    return np.add(canonical(parts[:left]), canonical(parts[left:]))


def divided(total, replicas):
    parts = total.view(total.real.dtype)
    return (parts / parts.dtype.type(replicas)).view(total.dtype)


def integer_mean(arrays):
    """Exact in Python's integers, rounded once to the result's type, and then divided."""
    result = np.float32 if arrays[0].dtype.itemsize <= 2 else np.float64
    columns = zip(*(array.ravel().tolist() for array in arrays))
    totals = np.array([float(sum(column)) for column in columns], dtype=result)
    return (totals / result(len(arrays))).reshape(arrays[0].shape)


def reduced(arrays, is_mean):
    """The sum or mean of the arrays of all replicas, to the bit."""
    dtype = arrays[0].dtype
    if dtype.kind in "iu" and is_mean:
        return integer_mean(arrays)
    total = np.atleast_1d(canonical([array.astype(accumulator(dtype)) for array in arrays]))
    if is_mean and len(arrays) > 1:
        total = divided(total, len(arrays))
    return total.astype(dtype).reshape(arrays[0].shape)


class PlanReader:
    """Runs the text of a plan (of one pack of float32 or float64, that reduces) on NumPy arrays.

    Lanes take turns; a step that has to wait (for a message, a free slot or another lane) leaves the turn.
    """

    def __init__(self, text, inputs):
        self.inputs = [array.ravel() for array in inputs]
        self.buffers, self.channels, self.lanes = {}, {}, []
        self.outputs = {}
        for line in text.splitlines():
            self.read(line)
        self.at = [0] * len(self.lanes)

    def read(self, line):
        if line.startswith("  "):
            self.lanes[-1].append(line.strip())
        elif line.startswith("lane"):
            self.lanes.append([])
        elif found := re.match(r"p0 (\w+) .*?;(?: split ([^;]*);)?", line):
            assert found[1] == "reduce"
            self.cuts = self.cut(0, len(self.inputs[0]), (found[2] or "").split())
        elif re.match(r"p\d", line):
            raise AssertionError("more than one pack")
        elif found := re.match(r"c(\d+) ", line):
            self.channels[found[1]] = deque()
        elif found := re.match(r"b(\d+) (\w+) c?(\d+) of p0 on \d+ \w+( \[.*\])?", line):
            number, role, index = found[1], found[2], found[3]
            self.buffers[number] = self.memory(role, index)
            if role in ("output", "inout"):
                self.outputs[int(index)] = number
            if role in ("slot", "view"):
                self.buffers[number] = (role, index)

    def memory(self, role, index):
        if role in ("input", "inout"):
            return self.inputs[int(index)].copy()
        return np.full_like(self.inputs[0], np.nan)

    def cut(self, offset, length, levels):
        """(offset, length) of each chunk."""
        if not levels:
            return [(offset, length)]
        rule, parts = levels[0], int(levels[1])
        share = length // parts if rule == "ragged" else -(-length // parts)
        chunks = []
        for part in range(parts):
            first = min(part * share, length)
            last = length if part == parts - 1 else min(first + share, length)
            chunks += self.cut(offset + first, last - first, levels[2:])
        return chunks

    def extent(self, operand):
        found = re.fullmatch(r"b(\d+)(?:\[(\d+)(?:\.\.(\d+))?\])?", operand)
        if found[2] is None:
            return found[1], slice(0, None)
        first, last = int(found[2]), int(found[3] or found[2])
        begin, (offset, length) = self.cuts[first][0], self.cuts[last]
        return found[1], slice(begin, offset + length)

    def load(self, operand):
        number, where = self.extent(operand)
        memory = self.buffers[number]
        return self.view(memory)[where] if isinstance(memory, tuple) else memory[where]

    def view(self, memory):
        return self.channels[memory[1]][0]

    def store(self, operand, value):
        number, where = self.extent(operand)
        memory = self.buffers[number]
        if isinstance(memory, tuple):
            message = np.full_like(self.inputs[0], np.nan)
            message[where] = value
            self.channels[memory[1]].append(message)
        else:
            memory[where] = value

    def evaluate(self, text):
        """The sum that a reduce step writes down."""
        divisor = None
        if found := re.fullmatch(r"(.*) / (\d+)", text):
            text, divisor = found[1], int(found[2])
        tokens = re.findall(r"b\d+(?:\[[\d.]+\])?|[()+]", text)

        def tree():
            total = term()
            while tokens and tokens[0] == "+":
                tokens.pop(0)
                total = np.add(total, term())
            return total

        def term():
            token = tokens.pop(0)
            if token != "(":
                return self.load(token)
            total = tree()
            assert tokens.pop(0) == ")"
            return total

        total = tree()
        return total if divisor is None else divided(total, divisor)

    def step(self, text):
        """Whether the step could be done."""
        if found := re.fullmatch(r"recv c(\d+): .*", text):
            return len(self.channels[found[1]]) > 0
        if found := re.fullmatch(r"release c(\d+)", text):
            self.channels[found[1]].popleft()
            return True
        if found := re.fullmatch(r"wait lane (\d+) step (\d+)", text):
            return self.at[int(found[1])] > int(found[2])
        found = re.fullmatch(r"(?:copy|reduce) on \d+(?: in \w+)?: (.*) = (.*)", text)
        value = np.array(self.evaluate(found[2]))
        for target in found[1].split():
            self.store(target, value)
        return True

    def run(self):
        """The results, by the number of the destination."""
        while any(at < len(lane) for at, lane in zip(self.at, self.lanes)):
            before = list(self.at)
            for number, lane in enumerate(self.lanes):
                while self.at[number] < len(lane) and self.step(lane[self.at[number]]):
                    self.at[number] += 1
            assert self.at != before, "the plan is stuck"
        return [self.buffers[self.outputs[index]] for index in sorted(self.outputs)]
