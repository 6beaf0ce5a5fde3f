"""Works and futures, groups, messages, and how ranks meet."""

import subprocess
import sys

import pytest
from ranks import PROGRAMS, expect_success, free_port, plain_environment, run_ranks


@pytest.mark.parametrize("size", [1, 2, 3])
def test_works_and_futures(size):
    expect_success(run_ranks("works.py", size))


def test_several_groups_and_lives():
    expect_success(run_ranks("groups.py", 4))


@pytest.mark.parametrize("size", [2, 3])
def test_messages(size):
    expect_success(run_ranks("messages.py", size))


def test_meeting_at_a_file(tmp_path):
    expect_success(run_ranks("spawned.py", 2, f"file://{tmp_path}/store", torchrun=False))


def test_meeting_at_an_address():
    expect_success(run_ranks("spawned.py", 2, f"tcp://127.0.0.1:{free_port()}", torchrun=False))


def test_meeting_without_a_shared_machine():
    """As on several machines: worker 0's address and a secret go through the store."""
    address = f"tcp://127.0.0.1:{free_port()}"
    expect_success(run_ranks("spawned.py", 2, address, torchrun=False, ONESUM_MACHINE="machine-RANK"))


def test_torchrun_needs_nothing_else():
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    end = subprocess.run(
        [*run, str(PROGRAMS / "works.py")], env=plain_environment(), capture_output=True, text=True, timeout=300
    )
    assert end.returncode == 0 and end.stdout.count("good") == 2, end.stdout + end.stderr
