"""Programs of several worker processes, started with the variables that `onesum run` sets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass
class End:
    status: int
    out: str
    err: str


def plain_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("ONESUM_")}


def run_workers(program: str, workers: int, *args: str, timeout: float = 300, **env: str) -> list[End]:
    """How every worker of programs/`program` ended. All have `timeout` seconds; who has not ended then is killed,
    and its status is -9."""
    job = f"test-{uuid.uuid4().hex}"
    processes = []
    for rank in range(workers):
        # One worker alone is what a program is without a launcher.
        ours = {"ONESUM_RANK": str(rank), "ONESUM_SIZE": str(workers), "ONESUM_JOB": job} if workers > 1 else {}
        processes.append(
            subprocess.Popen(
                [sys.executable, str(PROGRAMS / program), *args],
                env=plain_environment() | ours | env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    deadline = time.monotonic() + timeout
    ends = []
    for process in processes:
        try:
            out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
        ends.append(End(process.returncode, out, err))
    return ends


def expect_success(ends: list[End]) -> None:
    for rank, end in enumerate(ends):
        assert end.status == 0, f"worker {rank} ended with {end.status}:\n{end.out}\n{end.err}"
        assert "leaked" not in end.err, end.err
