"""Common to all tests: settings of hypothesis, the tool, and workers as processes."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from hypothesis import HealthCheck, settings

import onesum

settings.register_profile(
    "onesum",
    deadline=None,
    derandomize=True,
    max_examples=int(os.environ.get("ONESUM_EXAMPLES", "150")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("onesum")

TOOL = pathlib.Path(onesum.__file__).parent / "bin" / "onesum"


@pytest.fixture
def run_python():
    """Runs a program in a Python of its own; what it says must not contain nanobind's leak warnings."""

    def run(program, timeout=60, status=0, **environment):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **environment},
        )
        assert "leaked" not in done.stderr, done.stderr
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def run_workers(tmp_path):
    """Runs a program as several workers, by `onesum run`; gives what it did."""

    def run(program, workers=2, timeout=60):
        file = tmp_path / "worker.py"
        file.write_text(textwrap.dedent(program))
        command = [TOOL, "run", "-n", str(workers), "--no-prefix", "--keep-going", "--", sys.executable, file]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout)

    return run
