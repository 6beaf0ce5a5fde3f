"""What `import onesum.tensorflow` says where it cannot work."""

import shutil
import subprocess
import sys
from pathlib import Path

import tensorflow as tf
from workers import plain_environment

PACKAGE = Path(__file__).parents[2] / "onesum"


def error_of_import(folder: Path) -> str:
    """With the package's Python files in `folder`, and what the test has put beside them."""
    shutil.copytree(PACKAGE / "tensorflow", folder / "onesum" / "tensorflow", dirs_exist_ok=True)
    shutil.copy(PACKAGE / "_bridges.py", folder / "onesum")
    end = subprocess.run(
        [sys.executable, "-c", "import onesum.tensorflow"],
        env=plain_environment() | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert end.returncode == 1, end.stdout
    return end.stderr


def test_another_version_than_cmake_has_built_it_for(tmp_path):
    (tmp_path / "onesum" / "tensorflow").mkdir(parents=True)
    (tmp_path / "onesum" / "tensorflow" / "_built_for.py").write_text('TENSORFLOW_VERSION = "1.2.3"\n')
    text = error_of_import(tmp_path)
    assert "built for TensorFlow 1.2.3" in text and tf.__version__ in text, text


def test_neither_the_bridge_nor_its_sources(tmp_path):
    text = error_of_import(tmp_path)
    assert "has no bridge to TensorFlow and no sources of it" in text, text


def test_no_tensorflow(tmp_path):
    (tmp_path / "tensorflow.py").write_text('raise ImportError("there is none")\n')
    text = error_of_import(tmp_path)
    assert "onesum.tensorflow needs TensorFlow" in text and "there is none" in text, text
