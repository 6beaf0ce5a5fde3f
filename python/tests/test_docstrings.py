"""Every public class and method says what it is, with an example that works."""

import doctest
import enum

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


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_works(name):
    text = EXAMPLES[name]
    assert text, f"{name} has no docstring"
    if name not in WITHOUT_EXAMPLE:
        assert ">>>" in text, f"{name} has no example"
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "onesum": onesum}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL, verbose=False)
    said = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_there_are_many():
    assert len(EXAMPLES) > 80
