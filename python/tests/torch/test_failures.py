"""Ranks that are late, wrong or dead: the others get the library's error as a Python exception, and can end."""

import pytest
from ranks import run_ranks


def errors_of(what, size, **env):
    ends = run_ranks("failures.py", size, what, timeout=120, **env)
    for rank, end in enumerate(ends[:-1]):
        assert end.status == 0, f"rank {rank} ended with {end.status}:\n{end.out}\n{end.err}"
    return [end.out for end in ends]


@pytest.mark.parametrize("what", ["late", "late_barrier"])
def test_a_timeout_names_the_rank_that_is_missing(what):
    for text in errors_of(what, 3)[:-1]:
        assert "DistBackendError" in text and "task:2" in text, text


def test_waiting_has_a_timeout_of_its_own():
    text = errors_of("late_work", 2)[0]
    assert "200 ms" in text and "all_reduce (number 1" in text, text


def test_calls_that_differ_are_errors_of_all():
    for text in errors_of("differ", 2):
        assert "[10]" in text and "[11]" in text, text
    for text in errors_of("differ_in_type", 2):
        assert "float32" in text and "float64" in text, text


@pytest.mark.parametrize("what", ["killed", "killed_training"])
@pytest.mark.parametrize("size", [2, 4])
def test_a_killed_rank_ends_the_others(what, size):
    texts = errors_of(what, size)
    for text in texts[:-1]:
        assert f"task:{size - 1}" in text, text


def test_a_rank_that_ends_is_named():
    for text in errors_of("left", 3)[:-1]:
        assert "task:2" in text, text


def test_the_interpreter_ends_with_calls_under_way():
    errors_of("unfinished", 3)
