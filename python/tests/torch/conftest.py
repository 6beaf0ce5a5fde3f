"""Tests of onesum.torch. They need PyTorch in the interpreter that runs them, and say so where it is missing."""

import importlib.util
import sys
from pathlib import Path

MISSING = importlib.util.find_spec("torch") is None
collect_ignore = [
    file.name for file in Path(__file__).parent.glob("test_*.py") if MISSING and file.name != "test_presence.py"
]


def pytest_terminal_summary(terminalreporter):
    if MISSING:
        terminalreporter.write_line(
            f"SKIPPED, ALL OF IT: {sys.executable} has no PyTorch, so nothing of onesum.torch was tested", red=True
        )
