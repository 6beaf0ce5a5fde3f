"""Calls over worker processes."""

import pytest
from workers import expect_success, run_workers


@pytest.mark.parametrize(("workers", "devices"), [(2, 1), (2, 2), (3, 2)])
def test_every_call(workers, devices):
    expect_success(run_workers("calls.py", workers, str(devices)))
