"""Bridges to frameworks, built where they are used.

A bridge is C++ against the framework that is installed, and fits that version alone. pip cannot build it: it builds
a wheel apart from the user's packages, and before it installs them. So the wheel has the bridge's sources and the
library's headers, and the first import builds the bridge, or `python -m onesum.bridges torch` ahead of time: in the
package's folder, or, where that cannot be written, in $XDG_CACHE_HOME/onesum/bridges. The name of what was built has
the versions that it is for and a digest of all that it was made of. One process builds, the others wait for it.

In the build tree it is CMake that builds a bridge, for the framework that <package>/_built_for.py names.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parent
_LONGEST_BUILD = 20 * 60  # seconds


@dataclass(frozen=True)
class Framework:
    name: str  # of the bridge: onesum.<name>, with its sources in <name>/sources
    title: str
    version: str
    compile: list[str]
    link: list[str]


def _torch() -> Framework:
    import torch

    root = Path(torch.__file__).parent
    includes = [root / "include", root / "include/torch/csrc/api/include", Path(sysconfig.get_path("include"))]
    abi = int(torch.compiled_with_cxx11_abi())
    return Framework(
        name="torch",
        title="PyTorch",
        version=torch.__version__,
        compile=[f"-isystem{i}" for i in includes]
        + ["-DTORCH_EXTENSION_NAME=_torch", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"],
        link=[str(root / "lib" / f"lib{name}.so") for name in ("c10", "torch_cpu", "torch_python")],
    )


def _tensorflow() -> Framework:
    import tensorflow

    flags = tensorflow.sysconfig.get_compile_flags()
    return Framework(
        name="tensorflow",
        title="TensorFlow",
        version=tensorflow.__version__,
        compile=[re.sub("^-I", "-isystem", flag) for flag in flags if not re.match("--?std=", flag)],
        link=tensorflow.sysconfig.get_link_flags(),
    )


_FRAMEWORKS = {"tensorflow": _tensorflow, "torch": _torch}
NAMES = list(_FRAMEWORKS)


def extension(name: str) -> ModuleType:
    """The Python module onesum.<name>._<name>, of `library`."""
    full_name = f"onesum.{name}._{name}"
    path = str(library(name))
    loader = importlib.machinery.ExtensionFileLoader(full_name, path)
    spec = importlib.util.spec_from_file_location(full_name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[full_name] = module
    return module


def library(name: str) -> Path:
    """The shared library of a bridge that fits the framework of this process, built now if there is none."""
    entry = time.time()
    framework = _FRAMEWORKS[name]()
    package = _ROOT / name
    if (package / "_built_for.py").exists():
        return _built_by_cmake(framework, package)
    if not (package / "sources").is_dir():
        raise ImportError(
            f"this onesum ({_ROOT}) has no bridge to {framework.title} and no sources of it; install it with pip, or "
            f"build it with CMake and -DONESUM_{name.upper()}=on"
        )
    file = _file_name(framework)
    folders = [package / "built", _cache()]
    for folder in folders:
        if (folder / file).exists():
            _check_owner(folder)
            return folder / file
    folder = next((folder for folder in folders if _can_write(folder)), None)
    if folder is None:
        raise ImportError(f"onesum: there is no place for the bridge to {framework.title}: neither {folders[0]} nor "
                          f"{folders[1]} can be written; set XDG_CACHE_HOME to a folder that can")
    _check_owner(folder)
    with _turn_in(folder, framework):
        failure = folder / f"{file}.failed"
        if not (folder / file).exists():
            if failure.exists() and failure.stat().st_mtime > entry:  # another's, while this one waited
                raise ImportError(failure.read_text())
            _build(framework, folder / file, failure)
    return folder / file


def _built_by_cmake(framework: Framework, package: Path) -> Path:
    version = re.findall(r'_VERSION = "(.*)"', (package / "_built_for.py").read_text())[0]
    if version != framework.version:
        raise ImportError(
            f"onesum's bridge in {package} was built for {framework.title} {version}, and this is {framework.version}; "
            f"run CMake again with -DONESUM_{framework.name.upper()}_PYTHON={sys.executable} and build "
            f"onesum_{framework.name}"
        )
    files = sorted(package.glob(f"_{framework.name}*.so"))
    if not files:
        raise ImportError(f"onesum's bridge in {package} is not built yet: ninja onesum_{framework.name}")
    return files[0]


def _sources(framework: Framework) -> list[Path]:
    folders = [_ROOT / framework.name / "sources", _ROOT / "include" / "onesum"]
    return sorted(file for folder in folders for file in folder.iterdir() if file.suffix in (".cc", ".h"))


def _flags(framework: Framework) -> list[str]:
    return [
        *("-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-w"),
        *(f"-I{_ROOT / framework.name / 'sources'}", f"-I{_ROOT / 'include'}"),
        *framework.compile,
    ]


def _file_name(framework: Framework) -> str:
    digest = hashlib.sha256(repr([str(_ROOT), _flags(framework), framework.link]).encode())
    for source in _sources(framework):
        digest.update(source.read_bytes())
    python = sysconfig.get_config_var("SOABI")
    return f"_{framework.name}.{framework.version}.{python}.{digest.hexdigest()[:12]}.so"


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "onesum" / "bridges"


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700 if folder == _cache() else 0o777, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _check_owner(folder: Path) -> None:
    """What others could have put into the cache is not loaded."""
    status = folder.stat()
    if folder == _cache() and (status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise ImportError(f"onesum: {folder} can be written by others than this user, so nothing is loaded from it; "
                          "set XDG_CACHE_HOME to a folder of your own")


@contextlib.contextmanager
def _turn_in(folder: Path, framework: Framework) -> Iterator[None]:
    """One process at a time."""
    deadline = time.monotonic() + _LONGEST_BUILD + 60
    with open(folder / "lock", "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ImportError(
                        f"onesum: another process has been building the bridge to {framework.title} in {folder} for "
                        f"{_LONGEST_BUILD // 60} minutes (it holds {lock.name}); end it and import again"
                    ) from None
                time.sleep(0.1)
        yield


def _compiler(framework: Framework) -> list[str]:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    for name in names:
        words = shlex.split(name)
        if words and shutil.which(words[0]):
            return words
    raise ImportError(
        f"onesum: no C++ compiler for the bridge to {framework.title} {framework.version}: "
        f"{', '.join(names)} cannot be found; install one that knows C++20 (Debian: apt install g++), or set CXX"
    )


def _build(framework: Framework, target: Path, failure: Path) -> None:
    what = f"the bridge to {framework.title} {framework.version}"
    compiler = _compiler(framework)
    for left_over in target.parent.glob("building-*"):  # by a process that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    failure.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as folder:
        unit, product = Path(folder, "bridge.cc"), Path(folder, target.name)
        sources = [source for source in _sources(framework) if source.suffix == ".cc"]
        unit.write_text("".join(f'#include "{source}"\n' for source in sources))
        libonesum = next((_ROOT / "lib").glob("libonesum.so.*"))
        command = [*compiler, *_flags(framework), str(unit), *framework.link, str(libonesum)]
        command += [f"-Wl,-rpath,{libonesum.parent}", "-o", str(product)]
        say(f"building {what} in {target.parent}, once: this takes a minute or so")
        start = time.monotonic()
        try:
            end = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_BUILD)
            trouble = end.stderr + end.stdout if end.returncode != 0 else ""
            trouble = trouble or f"it ended with {end.returncode}" * (end.returncode != 0)
        except subprocess.TimeoutExpired:
            trouble = f"it was not done after {_LONGEST_BUILD // 60} minutes"
        if trouble:
            message = (
                f"onesum: {what} could not be built. It needs a compiler that knows C++20, Python's headers (Debian: "
                f"g++, python3-dev) and 1.5 GB of memory.\n{shlex.join(command)}\n{trouble}"
            )
            failure.write_text(message)
            raise ImportError(message)
        product.replace(target)
    say(f"built {what} in {time.monotonic() - start:.0f} s")


def say(text: str) -> None:
    print(f"onesum: {text}", file=sys.stderr, flush=True)
