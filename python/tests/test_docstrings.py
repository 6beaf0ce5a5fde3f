"""Every public class and method says what it is, with an example that works."""

import doctest
import enum
import pathlib
import re

import numpy as np
import pytest

import onesum
from onesum import errors


def documented():
    """(name, docstring) of everything public."""
    yield "onesum", onesum.__doc__
    yield "onesum.errors", errors.__doc__
    for name in onesum.__all__:
        thing = getattr(onesum, name)
        if name.startswith("__"):
            continue
        yield name, thing.__doc__
        if not isinstance(thing, type) or issubclass(thing, (enum.Enum, Exception)):
            continue
        for member, method in vars(thing).items():
            if isinstance(method, staticmethod):
                method = method.__func__
            if not member.startswith("_") and callable(method):
                yield f"{name}.{member}", method.__doc__


EXAMPLES = dict(documented())
# The errors' docstrings say what to do; one of them shows an example.
WITHOUT_EXAMPLE = {error.__name__ for error in errors._CLASSES.values()}


# Those that need two workers.
OF_MESSAGES = [name for name in EXAMPLES if name.startswith("PointToPoint")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_there_is_an_example(name):
    text = EXAMPLES[name]
    assert text, f"{name} has no docstring"
    assert ">>>" in text or name in WITHOUT_EXAMPLE, f"{name} has no example"


def check(name):
    text = EXAMPLES[name]
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "onesum": onesum}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL, verbose=False)
    said = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - set(OF_MESSAGES)))
def test_example_works(name):
    check(name)


def test_examples_of_messages_work(run_workers):
    program = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import onesum
import test_docstrings
cluster = onesum.Cluster.from_environment()
for name in {OF_MESSAGES}:
    test_docstrings.check(name)
    print("good", flush=True)
"""
    done = run_workers(program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("good") == 2 * len(OF_MESSAGES) == 10


def test_the_page_has_an_example_that_works(run_workers):
    page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert len(blocks) == 1
    done = run_workers(blocks[0] + 'print("good")\n', workers=4)
    assert done.stdout.count("good") == 4, done.stdout + done.stderr


def test_there_are_many():
    assert len(EXAMPLES) > 80
