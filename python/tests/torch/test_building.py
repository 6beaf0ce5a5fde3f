"""How an installed package builds its bridge: once, in the right place, with errors that say what is wrong. PyTorch
and the compiler are a few lines here; python/tests/bridges/pip_install has real ones."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import plain_environment

PACKAGE = Path(__file__).parents[2] / "onesum"
GOOD = "sleep 1; : >"
LIBRARY = "from onesum import _bridges; print(_bridges.library('torch'))"
TORCH = """import os
__version__ = os.environ.get("VERSION", "1.2.3")
def compiled_with_cxx11_abi(): return True
open(os.path.join(os.path.dirname(__file__), f"imported-{os.getpid()}"), "w")
"""


class Installed:
    """A package as a wheel has it, with a little less in it, and a compiler that notes its calls."""

    def __init__(self, folder: Path):
        self.root = folder / "onesum"
        self.folder = folder
        self.calls = folder / "calls"
        for name in ("torch/sources", "include/onesum", "lib"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(PACKAGE / "_bridges.py", self.root)
        shutil.copy(PACKAGE / "bridges.py", self.root)
        (self.root / "torch/sources/module.cc").write_text("// a bridge\n")
        (self.root / "include/onesum/onesum.h").write_text("// a header\n")
        (self.root / "lib/libonesum.so.0.1").touch()
        (folder / "torch").mkdir()
        (folder / "torch/__init__.py").write_text(TORCH)
        self.compile_by(GOOD)

    def compile_by(self, script: str) -> None:
        """A shell script, to which the name of the product is added."""
        compiler = self.folder / "compiler"
        text = f'#!/bin/sh\necho "$@" >>{self.calls}\nfor product; do :; done\n{script} "$product"\n'
        compiler.write_text(text)
        compiler.chmod(0o755)

    def start(self, *arguments: str, **env: str) -> subprocess.Popen:
        ours = {"PYTHONPATH": str(self.folder), "CXX": str(self.folder / "compiler")}
        ours["XDG_CACHE_HOME"] = str(self.folder / "cache")
        return subprocess.Popen(
            [sys.executable, *(arguments or ("-c", LIBRARY))],
            env=plain_environment() | ours | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def library(self, **env: str) -> Path:
        process = self.start(**env)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return Path(out.strip())

    def error(self, **env: str) -> str:
        process = self.start(**env)
        _, err = process.communicate()
        assert process.returncode == 1 and "ImportError" in err, err
        return err

    def number_of_calls(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path)


def test_it_is_built_once_beside_the_package_and_named_after_its_versions(installed):
    path = installed.library()
    assert path.parent == installed.root / "torch" / "built" and path.exists()
    assert path.name.startswith("_torch.1.2.3.") and f"cpython-{sys.version_info.major}{sys.version_info.minor}" in path.name
    assert installed.library() == path
    assert installed.number_of_calls() == 1
    assert not list(path.parent.glob("building-*"))


def test_ranks_that_import_at_the_same_time_build_once(installed):
    processes = [installed.start() for _ in range(4)]
    ends = [process.communicate() for process in processes]
    assert all(process.returncode == 0 for process in processes), ends
    assert len({out for out, _ in ends}) == 1 and installed.number_of_calls() == 1
    assert sum("building the bridge to PyTorch" in err for _, err in ends) == 1, ends


def test_a_failure_is_told_to_those_who_wait_and_tried_again_later(installed):
    all_are_here = f"while [ $(ls {installed.folder}/torch | grep -c imported) -lt 3 ]; do sleep 0.1; done"
    installed.compile_by(f"{all_are_here}; sleep 1; echo no such header >&2; exit 3 #")
    processes = [installed.start() for _ in range(3)]
    ends = [process.communicate() for process in processes]
    for process, (_, err) in zip(processes, ends):
        assert process.returncode == 1 and "no such header" in err and "module.cc" not in err, err
    assert installed.number_of_calls() == 1, "somebody tried again"
    installed.compile_by(GOOD)
    assert installed.library().exists()


def test_a_builder_that_is_killed_is_replaced(installed):
    installed.compile_by("sleep 60 #")
    process = installed.start()
    while installed.number_of_calls() == 0:
        assert process.poll() is None, process.communicate()
    process.kill()
    process.wait()
    installed.compile_by(GOOD)
    path = installed.library()
    assert path.exists() and not list(path.parent.glob("building-*"))


def test_other_sources_or_headers_are_built_again(installed):
    paths = {installed.library()}
    (installed.root / "torch/sources/module.cc").write_text("// another bridge\n")
    paths.add(installed.library())
    (installed.root / "include/onesum/onesum.h").write_text("// another header\n")
    paths.add(installed.library())
    assert len(paths) == 3


def test_another_version_of_pytorch_is_built_for_too(installed):
    first = installed.library()
    second = installed.library(VERSION="1.2.4")
    assert second.name.startswith("_torch.1.2.4.") and first.exists() and second.exists()
    assert installed.library() == first and installed.number_of_calls() == 2


def test_where_the_package_cannot_be_written_it_is_the_cache(installed):
    (installed.root / "torch" / "built").touch()  # no folder, also for root
    path = installed.library()
    assert path.parent == installed.folder / "cache" / "onesum" / "bridges"
    assert path.parent.stat().st_mode & 0o077 == 0
    path.parent.chmod(0o777)
    assert "can be written by others" in installed.error()
    shutil.rmtree(path.parent)
    shutil.rmtree(installed.folder / "cache")
    (installed.folder / "cache").touch()
    assert "there is no place for the bridge" in installed.error()


def test_no_compiler(installed):
    text = installed.error(CXX="no-such-compiler -O2")
    assert "no C++ compiler" in text and "no-such-compiler" in text and "apt install g++" in text, text
    (installed.folder / "empty").mkdir()
    text = installed.error(CXX="", PATH=str(installed.folder / "empty"))
    assert "c++, g++, clang++ cannot be found" in text, text


def test_ahead_of_time(installed):
    process = installed.start("-m", "onesum.bridges", "torch")
    out, err = process.communicate()
    assert process.returncode == 0 and os.path.exists(out.strip()) and "built the bridge" in err, err
    assert Path(out.strip()) == installed.library() and installed.number_of_calls() == 1
    process = installed.start("-m", "onesum.bridges", "caffe")
    assert "invalid choice: 'caffe'" in process.communicate()[1]
