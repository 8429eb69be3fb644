"""The kernels: compiled once, never stale, whole in the wheel."""

from __future__ import annotations

import bz2
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

KERNEL = '#include "shared.cuh"\nextern "C" __global__ void {0}(int* p) {{ *p = VALUE; }}\n'


@pytest.fixture(scope="module")
def python(root: Path) -> Path:
    """An interpreter with the build requirements; the partners' torch may want another NVRTC."""
    for candidate in (root / ".venv" / "bin" / "python", Path(sys.executable)):
        command = [candidate, "-c", "import nvidia.cuda_nvrtc, nvidia.cuda_runtime"]
        if candidate.exists() and not subprocess.run(command, capture_output=True).returncode:
            return candidate
    pytest.skip("needs an environment with NVRTC 12.9; make build makes one in .venv/")


class Tree(SimpleNamespace):
    """A folder of kernels with the compiler's script, as in the repository."""

    folder: Path
    python: Path

    @property
    def compiled(self) -> dict[str, bytes]:
        files = (self.folder / "compiled").iterdir()
        return {file.name: file.read_bytes() for file in files if file.name != ".gitignore"}

    def run(self, *architectures: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, self.folder / "compile.py", *architectures]
        return subprocess.run(command, capture_output=True, text=True, timeout=240)

    def make(self, *architectures: str) -> int:
        """How many images it compiled."""
        done = self.run(*architectures)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split("compiled ")[1].split()[0]) if done.stdout else 0


@pytest.fixture
def tree(root: Path, python: Path, tmp_path: Path) -> Tree:
    folder = tmp_path / "kernels"
    (folder / "compiled").mkdir(parents=True)
    (folder / "compiled" / ".gitignore").write_text("*\n")
    shutil.copy(root / "kernels" / "compile.py", folder)
    (folder / "shared.cuh").write_text("#define VALUE 7\n")
    for name in ("first", "second"):
        (folder / f"{name}.cu").write_text(KERNEL.format(name))
    return Tree(folder=folder, python=python)


def test_machine_code_and_ptx(tree: Tree) -> None:
    assert tree.make("sm_75", "compute_75") == 4
    made = tree.compiled
    assert set(made) == {
        *("first.sm_75.bz2", "first.compute_75.bz2"),
        *("second.sm_75.bz2", "second.compute_75.bz2", "sources"),
    }
    assert bz2.decompress(made["first.sm_75.bz2"]).startswith(b"\x7fELF")
    ptx = bz2.decompress(made["first.compute_75.bz2"])
    assert b".target sm_75" in ptx
    assert b".entry first(" in ptx
    lines = made["sources"].decode().splitlines()
    assert lines == [
        f"{hashlib.sha256((tree.folder / name).read_bytes()).hexdigest()}  {name}"
        for name in ("first.cu", "second.cu", "shared.cuh")
    ]


def test_nothing_is_compiled_twice_and_nothing_is_stale(tree: Tree) -> None:
    assert tree.make("sm_75") == 2
    before = tree.compiled
    assert tree.make("sm_75") == 0
    assert tree.compiled == before
    assert tree.make("sm_80") == 2
    assert {"first.sm_75.bz2", "first.sm_80.bz2"} <= set(tree.compiled)
    # One file alone, then one that both include.
    with open(tree.folder / "first.cu", "a") as file:
        file.write("// changed\n")
    assert tree.make("sm_75") == 1
    assert set(tree.compiled) == {
        *("first.sm_75.bz2", "second.sm_75.bz2", "second.sm_80.bz2", "sources")
    }
    (tree.folder / "shared.cuh").write_text("#define VALUE 8\n")
    assert tree.make("sm_75") == 2
    assert tree.compiled["first.sm_75.bz2"] != before["first.sm_75.bz2"]
    # What was there once is there still.
    (tree.folder / "shared.cuh").write_text("#define VALUE 7\n")
    assert tree.make("sm_75") == 0
    assert tree.compiled["second.sm_75.bz2"] == before["second.sm_75.bz2"]
    (tree.folder / "second.cu").unlink()
    assert tree.make("sm_75") == 0
    assert not any(name.startswith("second") for name in tree.compiled)


def test_source_that_does_not_compile(tree: Tree) -> None:
    assert tree.make("sm_75") == 2
    (tree.folder / "second.cu").write_text('extern "C" __global__ void second() { nonsense; }\n')
    done = tree.run("sm_75")
    assert done.returncode == 1
    assert "second.cu for sm_75:" in done.stderr
    assert 'second.cu(1): error: identifier "nonsense" is undefined' in done.stderr
    assert "Traceback" not in done.stderr
    assert set(tree.compiled) == {"first.sm_75.bz2", "sources"}


def test_warnings_are_shown(tree: Tree) -> None:
    (tree.folder / "first.cu").write_text(
        'extern "C" __global__ void first() { int unused = 1; }\n'
    )
    done = tree.run("sm_75")
    assert done.returncode == 0, done.stderr
    assert 'variable "unused" was declared but never referenced' in done.stderr


def test_unknown_architecture(tree: Tree) -> None:
    done = tree.run("sm_1")
    assert done.returncode == 1
    assert done.stderr.startswith("pygsampler: expected of sm_75, ")
    assert done.stderr.endswith("; got sm_1\n")


def test_no_nvrtc_says_how_to_get_it(root: Path) -> None:
    command = [sys.executable, "-I", "-S", str(root / "kernels" / "compile.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "pygsampler: no NVRTC; install it with: pip install nvidia-cuda-nvrtc-cu12==12.9.86\n"
    )


def test_the_extension_has_every_kernel_for_every_architecture(extension: Path, root: Path) -> None:
    content = extension.read_bytes()
    sources = sorted((root / "kernels").glob("*.cu"))
    assert "neighbor" in {source.stem for source in sources}
    architectures = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_75")
    missing = [
        name
        for source in sources
        for architecture in architectures
        if (name := f"compiled/{source.stem}.{architecture}.").encode() not in content
    ]
    assert missing == []
