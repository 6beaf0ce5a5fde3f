"""What `import onesum.tensorflow` says where it cannot work."""

import shutil
import subprocess
import sys
from pathlib import Path

import tensorflow as tf
from workers import plain_environment

PACKAGE = Path(__file__).parents[2] / "onesum" / "tensorflow"


def error_of_import(folder: Path) -> str:
    """With the package's Python files in `folder`, and what the test has put beside them."""
    shutil.copytree(PACKAGE, folder / "onesum" / "tensorflow", dirs_exist_ok=True)
    end = subprocess.run(
        [sys.executable, "-c", "import onesum.tensorflow"],
        env=plain_environment() | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert end.returncode == 1, end.stdout
    return end.stderr


def test_another_version(tmp_path):
    (tmp_path / "onesum" / "tensorflow").mkdir(parents=True)
    (tmp_path / "onesum" / "tensorflow" / "_built_for.py").write_text('TENSORFLOW_VERSION = "1.2.3"\n')
    text = error_of_import(tmp_path)
    assert "built for TensorFlow 1.2.3" in text and tf.__version__ in text, text


def test_built_without_the_bridge(tmp_path):
    text = error_of_import(tmp_path)
    assert "built without its bridge to TensorFlow" in text, text


def test_no_tensorflow(tmp_path):
    (tmp_path / "tensorflow.py").write_text('raise ImportError("there is none")\n')
    text = error_of_import(tmp_path)
    assert "onesum.tensorflow needs TensorFlow" in text and "there is none" in text, text
