"""Tests of onesum.tensorflow. They need TensorFlow in the interpreter that runs them, and say so where it is missing."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

MISSING = importlib.util.find_spec("tensorflow") is None
collect_ignore = [
    file.name for file in Path(__file__).parent.glob("test_*.py") if MISSING and file.name != "test_tf_presence.py"
]

if not MISSING:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    # Four devices, before anything initializes TensorFlow.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
    )


@pytest.fixture(params=["eager", "function"])
def in_mode(request):
    """Calls a function that returns results of reductions, as it is or inside a tf.function, and gives for each result
    its components: a tf.function cannot return distributed values of slices."""
    from replicas import components_of

    def call(fn):
        def unpacked():
            return [components_of(result) for result in fn()]

        return tf.function(unpacked)() if request.param == "function" else unpacked()

    return call


def pytest_terminal_summary(terminalreporter):
    if MISSING:
        terminalreporter.write_line(
            f"SKIPPED, ALL OF IT: {sys.executable} has no TensorFlow, so nothing of onesum.tensorflow was tested",
            red=True,
        )
