"""What `import onesum.torch` says where it cannot work."""

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from ranks import plain_environment

PACKAGE = Path(__file__).parents[2] / "onesum"


def error_of_import(folder: Path, **env: str) -> str:
    """With the package's Python files in `folder`, and what the test has put beside them."""
    shutil.copytree(PACKAGE / "torch", folder / "onesum" / "torch", dirs_exist_ok=True)
    shutil.copy(PACKAGE / "_bridges.py", folder / "onesum")
    end = subprocess.run(
        [sys.executable, "-c", "import onesum.torch"],
        env=plain_environment() | {"PYTHONPATH": str(folder)} | env,
        capture_output=True,
        text=True,
    )
    assert end.returncode == 1, end.stdout
    return end.stderr


def test_another_version_than_cmake_has_built_it_for(tmp_path):
    (tmp_path / "onesum" / "torch").mkdir(parents=True)
    (tmp_path / "onesum" / "torch" / "_built_for.py").write_text('TORCH_VERSION = "1.2.3"\n')
    text = error_of_import(tmp_path)
    assert "built for PyTorch 1.2.3" in text and torch.__version__ in text, text


def test_configured_and_not_built(tmp_path):
    (tmp_path / "onesum" / "torch").mkdir(parents=True)
    (tmp_path / "onesum" / "torch" / "_built_for.py").write_text(f'TORCH_VERSION = "{torch.__version__}"\n')
    text = error_of_import(tmp_path)
    assert "not built yet: ninja onesum_torch" in text, text


def test_neither_the_bridge_nor_its_sources(tmp_path):
    text = error_of_import(tmp_path)
    assert "has no bridge to PyTorch and no sources of it" in text, text


def test_no_pytorch(tmp_path):
    (tmp_path / "torch.py").write_text('raise ImportError("there is none")\n')
    text = error_of_import(tmp_path)
    assert "onesum.torch needs PyTorch" in text and "there is none" in text, text
