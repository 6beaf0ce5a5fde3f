"""Workers that are late, wrong or dead: the others get the library's error as TensorFlow's, and can end."""

import pytest
from workers import run_workers


def errors_of(what, how, workers=2):
    """What every worker printed. All but the last must end by themselves."""
    ends = run_workers("failures.py", workers, what, how, timeout=300)
    for rank, end in enumerate(ends[:-1]):
        assert end.status == 0, f"worker {rank} ended with {end.status}:\n{end.out}\n{end.err}"
    return [end.out for end in ends]


@pytest.mark.parametrize(("how", "workers"), [("eager", 2), ("function", 3)])
def test_a_killed_worker_ends_the_others(how, workers):
    for text in errors_of("killed", how, workers)[:-1]:
        assert "AbortedError" in text and f"task:{workers - 1}" in text, text


def test_a_killed_worker_ends_the_training_of_the_others():
    text = errors_of("fit", "function")[0]
    assert "AbortedError" in text and "task:1" in text, text


def test_a_worker_that_ends_is_named():
    text = errors_of("left", "function")[0]
    assert "AbortedError" in text and "task:1" in text, text


def test_a_timeout_names_the_worker_that_is_missing():
    text = errors_of("late", "function")[0]
    assert "DeadlineExceededError" in text and "task:1" in text, text


@pytest.mark.parametrize(
    ("what", "how", "words"),
    [
        ("shapes", "function", ["[10]", "[11]"]),
        ("types", "eager", ["float32", "float64"]),
        ("kinds", "eager", ["reduce", "broadcast"]),
    ],
)
def test_calls_that_differ_are_errors_of_all(what, how, words):
    for text in errors_of(what, how):
        assert "InvalidArgumentError" in text and all(word in text for word in words), text


@pytest.mark.parametrize("how", ["eager", "function"])
def test_the_interpreter_ends_with_calls_under_way(how):
    errors_of("unfinished", how)
