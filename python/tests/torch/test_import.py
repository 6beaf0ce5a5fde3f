"""What `import onesum.torch` says where it cannot work."""

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from ranks import plain_environment

PACKAGE = Path(__file__).parents[2] / "onesum" / "torch"


def error_of_import(folder: Path) -> str:
    """With the package's Python files in `folder`, and what the test has put beside them."""
    shutil.copytree(PACKAGE, folder / "onesum" / "torch", dirs_exist_ok=True, ignore=shutil.ignore_patterns("_[!_]*.so"))
    end = subprocess.run(
        [sys.executable, "-c", "import onesum.torch"],
        env=plain_environment() | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert end.returncode == 1, end.stdout
    return end.stderr


def test_another_version(tmp_path):
    (tmp_path / "onesum" / "torch").mkdir(parents=True)
    (tmp_path / "onesum" / "torch" / "_built_for.py").write_text('TORCH_VERSION = "1.2.3"\n')
    text = error_of_import(tmp_path)
    assert "built for PyTorch 1.2.3" in text and torch.__version__ in text, text


def test_built_without_the_bridge(tmp_path):
    text = error_of_import(tmp_path)
    assert "built without its bridge to PyTorch" in text, text


def test_no_pytorch(tmp_path):
    (tmp_path / "torch.py").write_text('raise ImportError("there is none")\n')
    text = error_of_import(tmp_path)
    assert "onesum.torch needs PyTorch" in text and "there is none" in text, text
