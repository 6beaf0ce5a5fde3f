"""Programs of several ranks, started as torchrun starts them, without its second start of Python."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass
class End:
    status: int
    out: str
    err: str


def free_port() -> int:
    """With a free one after it, for the library."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1] & ~1


def torchrun_variables(rank: int, size: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": f"test-{os.getpid()}-{port}",
        "OMP_NUM_THREADS": "1",
        "TORCH_FR_DUMP_ON_TIMEOUT": "0",
    }


def plain_environment() -> dict[str, str]:
    dropped = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {k: v for k, v in os.environ.items() if k not in dropped and not k.startswith(("TORCHELASTIC_", "ONESUM_"))}


def run_ranks(program: str, size: int, *args: str, timeout: float = 300, torchrun: bool = True, **env: str) -> list[End]:
    """How every rank of programs/`program` ended. All have `timeout` seconds; who has not ended then is killed,
    and its status is -9. RANK in a value of `env` is the rank."""
    port = free_port()
    processes = []
    for rank in range(size):
        ours = torchrun_variables(rank, size, port) if torchrun else {}
        command = [sys.executable, str(PROGRAMS / program), *args]
        if not torchrun:
            command += [str(rank), str(size)]
        processes.append(
            subprocess.Popen(
                command,
                env=plain_environment() | ours | {k: v.replace("RANK", str(rank)) for k, v in env.items()},
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
        assert end.status == 0, f"rank {rank} ended with {end.status}:\n{end.out}\n{end.err}"
