"""What tools/wheels.py finds, and what it refuses; that it makes wheels is for `make wheels`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def wheels(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheels", root / "tools" / "wheels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for their module.
    sys.modules["wheels"] = module
    spec.loader.exec_module(module)
    return module


def script(file: Path, body: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def test_builds_for_what_the_metadata_says(wheels: ModuleType) -> None:
    assert wheels.supported() == ["3.10", "3.11", "3.12", "3.13"]


def test_interpreters_are_looked_for_on_path_then_in_pyenv_and_uv(
    wheels: ModuleType, tmp_path: Path
) -> None:
    places = [
        tmp_path / "bin" / "python3.11",
        tmp_path / "bin" / "python3",
        tmp_path / "home/.pyenv/versions/3.11.7/bin/python3.11",
        tmp_path / "home/.local/share/uv/python/cpython-3.11.9-linux-x86_64-gnu/bin/python3.11",
    ]
    for place in [*places, tmp_path / "home/.pyenv/versions/3.1.1/bin/python3.1"]:
        script(place, "exit 1")
    env = {"PATH": f"{tmp_path / 'nowhere'}:{tmp_path / 'bin'}", "HOME": str(tmp_path / "home")}
    assert list(wheels.candidates("3.11", env)) == places


def test_a_candidate_is_asked_what_it_is(wheels: ModuleType, tmp_path: Path) -> None:
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("needs Python.h (apt-get install python3-dev)")
    assert wheels.usable(Path(sys.executable), VERSION) == sys.executable
    assert wheels.usable(Path(sys.executable), "3.9") is None
    answers = {
        "PyPy 3.11 pypy311 /opt/pypy": None,
        "CPython 3.11 311t /opt/free-threaded": None,
        "CPython 3.11 311 /opt/with space/python": "/opt/with space/python",
    }
    for answer, expected in answers.items():
        script(tmp_path / "python3.11", f"echo '{answer}'")
        assert wheels.usable(tmp_path / "python3.11", "3.11") == expected
    # pyenv's script for a version that is not chosen here.
    script(tmp_path / "python3.11", "echo 'CPython 3.11 311 /x'; exit 127")
    assert wheels.usable(tmp_path / "python3.11", "3.11") is None


def test_missing_interpreters_are_named(wheels: ModuleType, tmp_path: Path) -> None:
    script(tmp_path / "python3.11", "echo CPython 3.11 311 /opt/python")
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    assert wheels.interpreters(["3.11"], env) == {"3.11": "/opt/python"}
    with pytest.raises(SystemExit) as stopped:
        wheels.interpreters(["3.10", "3.11", "3.13"], env)
    message = str(stopped.value)
    assert message.startswith("wheels: no CPython 3.10, 3.13 with Python.h and venv on PATH")
    assert message.endswith("make wheels VERSIONS='3.11'")


def test_unknown_versions_are_refused(root: Path) -> None:
    command = [sys.executable, str(root / "tools" / "wheels.py"), "3.11", "3.99"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stderr == "wheels: expected of 3.10, 3.11, 3.12, 3.13; got 3.99\n"


def test_what_fails_shows_the_end_of_its_log(wheels: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    wheels.run(["sh", "-c", "echo first"], log, os.environ)
    with pytest.raises(SystemExit) as stopped:
        wheels.run(["sh", "-c", "echo the reason; exit 3"], log, os.environ)
    assert str(stopped.value).startswith("the reason\nwheels: sh -c ")
    assert log.read_text().splitlines()[1::2] == ["first", "the reason"]


def test_extensions_are_inspected(wheels: ModuleType, extension: Path, tmp_path: Path) -> None:
    newest = re.findall(
        r"GLIBC_(\d+)\.(\d+)",
        subprocess.run(
            ["readelf", "--version-info", extension], capture_output=True, text=True, check=True
        ).stdout,
    )
    expected = max((int(major), int(minor)) for major, minor in newest)
    scratch = tmp_path / "scratch.so"
    wheels.GLIBC = expected
    assert wheels.inspect(extension.read_bytes(), scratch) == expected
    wheels.GLIBC = (2, 1)
    with pytest.raises(SystemExit, match=r"wheels: expected symbols up to glibc \(2, 1\)"):
        wheels.inspect(extension.read_bytes(), scratch)
    wheels.GLIBC = expected
    with pytest.raises(SystemExit, match="names a folder of this machine"):
        wheels.inspect(extension.read_bytes() + bytes(wheels.ROOT), scratch)
    if shutil.which("gcc"):
        source = tmp_path / "two.c"
        source.write_text("int PyInit__bridge(void) { return 0; }\nint other(void) { return 1; }\n")
        library = tmp_path / "two.so"
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
        with pytest.raises(SystemExit, match=r"exports .*'other'"):
            wheels.inspect(library.read_bytes(), scratch)
