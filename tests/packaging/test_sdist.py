"""The source distribution holds all that a build and its tests need."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

SUFFIXES = {"go", "c", "cpp", "h", "cu", "cuh", "py", "pyi", "npz", "sh"}


@pytest.fixture(scope="module")
def names(root: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("sdist")
    code = "import setup, sys; setup.build_sdist(sys.argv[1])"
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=240)
    (archive,) = folder.glob("pygsampler-*.tar.gz")
    with tarfile.open(archive) as tar:
        return {name.partition("/")[2] for name in tar.getnames()}


def test_has_every_source(names: set[str], root: Path) -> None:
    sources = {
        str(file.relative_to(root))
        for folder in ("bridge", "gpu", "kernels", "pygsampler", "python", "tests", "tools")
        for file in (root / folder).rglob("*.*")
        if file.suffix[1:] in SUFFIXES
    }
    assert {
        "bridge/bridge.go",
        "kernels/neighbor/neighbor.cu",
        "python/pygsampler/__init__.py",
    } <= sources
    assert sources - names == set()
    assert {"go.mod", "go.sum", "setup.py", "pyproject.toml", "Makefile", "LICENSE"} <= names


def test_has_all_that_git_has(names: set[str], root: Path) -> None:
    command = ["git", "-C", str(root), "ls-files", "-z"]
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("needs git on PATH and a clone of the repository: git clone")
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tracked = {name for name in shown.rstrip("\0").split("\0") if (root / name).exists()}
    assert {".ci/run", ".github/workflows/release.yml", "RELEASING.md"} <= tracked
    assert tracked - names == set()


def test_has_nothing_that_was_built(names: set[str]) -> None:
    assert "setup.py" in names
    assert [name for name in names if name.endswith((".so", ".a", ".o", ".pyc"))] == []
    compiled = {name for name in names if name.startswith("kernels/compiled/")}
    assert compiled == {"kernels/compiled/.gitignore"}
