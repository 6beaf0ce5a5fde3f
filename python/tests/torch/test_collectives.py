"""Every collective, type and operation in worlds of one to four."""

import pytest
from ranks import expect_success, run_ranks


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_collective_gives_what_it_should(size):
    expect_success(run_ranks("collectives.py", size))
