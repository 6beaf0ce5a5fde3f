import pytest
from conftest import MISSING


def test_pytorch_and_the_bridge_are_here():
    if MISSING:
        pytest.skip("no PyTorch: nothing of onesum.torch was tested")
    import onesum.torch  # noqa: F401
