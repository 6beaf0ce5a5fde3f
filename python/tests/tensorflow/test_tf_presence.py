import importlib.util

import pytest


def test_tensorflow_and_the_bridge_are_here():
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("no TensorFlow: nothing of onesum.tensorflow was tested")
    import onesum.tensorflow  # noqa: F401
