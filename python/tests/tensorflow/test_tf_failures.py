"""Workers that are late, wrong or dead: the others get the library's error as TensorFlow's, and can end."""

import pytest
from workers import run_workers

HOW = pytest.mark.parametrize("how", ["eager", "function"])


def errors_of(what, how, workers=2):
    """What every worker printed. All but the last must end by themselves."""
    ends = run_workers("failures.py", workers, what, how, timeout=150)
    for rank, end in enumerate(ends[:-1]):
        assert end.status == 0, f"worker {rank} ended with {end.status}:\n{end.out}\n{end.err}"
    return [end.out for end in ends]


@HOW
@pytest.mark.parametrize("workers", [2, 3])
def test_a_killed_worker_ends_the_others(how, workers):
    for text in errors_of("killed", how, workers)[:-1]:
        assert "AbortedError" in text and f"task:{workers - 1}" in text, text


def test_a_killed_worker_ends_the_training_of_the_others():
    for text in errors_of("fit", "function", 2)[:-1]:
        assert "AbortedError" in text and "task:1" in text, text


def test_a_worker_that_ends_is_named():
    for text in errors_of("left", "function", 3)[:-1]:
        assert "AbortedError" in text and "task:2" in text, text


@HOW
def test_a_timeout_names_the_worker_that_is_missing(how):
    text = errors_of("late", how)[0]
    assert "DeadlineExceededError" in text and "task:1" in text, text


@HOW
def test_calls_that_differ_are_errors_of_all(how):
    for text in errors_of("shapes", how):
        assert "InvalidArgumentError" in text and "[10]" in text and "[11]" in text, text


@pytest.mark.parametrize(("what", "words"), [("types", ["float32", "float64"]), ("kinds", ["reduce", "broadcast"])])
def test_other_differences(what, words):
    for text in errors_of(what, "eager"):
        assert "InvalidArgumentError" in text and all(word in text for word in words), text


@HOW
def test_the_interpreter_ends_with_calls_under_way(how):
    errors_of("unfinished", how, 3)
