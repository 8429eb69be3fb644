"""The kernels: compiled once, never stale, whole in the wheel."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.once

KERNEL = '#include "common/shared.cuh"\nextern "C" __global__ void {0}(int* p) {{ *p = VALUE; }}\n'


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

    def run(self, *architectures: str, target: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.python, self.folder / "compile.py", *architectures]
        env = {**os.environ, "PYGSAMPLER_TARGET": target}
        return subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)

    def make(self, *architectures: str, target: str = "") -> int:
        """Returns how many images it compiled."""
        done = self.run(*architectures, target=target)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split("compiled ")[1].split()[0]) if done.stdout else 0


def images(packed: bytes) -> list[bytes]:
    """Returns what is in a file of ``compiled/``: images, the length of each before it."""
    content, found = lzma.decompress(packed), []
    while content:
        (size,) = struct.unpack_from("<Q", content)
        assert len(content) >= 8 + size
        found.append(content[8 : 8 + size])
        content = content[8 + size :]
    return found


@pytest.fixture
def tree(root: Path, python: Path, tmp_path: Path) -> Tree:
    folder = tmp_path / "kernels"
    (folder / "compiled").mkdir(parents=True)
    (folder / "compiled" / ".gitignore").write_text("*\n")
    shutil.copy(root / "kernels" / "compile.py", folder)
    for name, text in (
        ("common/shared.cuh", "#define VALUE 7\n"),
        ("a/first.cu", KERNEL.format("first")),
        ("b/second.cu", KERNEL.format("second")),
    ):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    return Tree(folder=folder, python=python)


def test_machine_code_and_ptx(tree: Tree) -> None:
    assert tree.make("sm_75", "compute_75") == 4
    made = tree.compiled
    assert set(made) == {
        *("first.sm_75.xz", "first.compute_75.xz"),
        *("second.sm_75.xz", "second.compute_75.xz", "sources"),
    }
    (code,) = images(made["first.sm_75.xz"])
    assert code.startswith(b"\x7fELF")
    (ptx,) = images(made["first.compute_75.xz"])
    assert b".target sm_75" in ptx
    assert b".entry first(" in ptx
    lines = made["sources"].decode().splitlines()
    assert lines == [
        f"{hashlib.sha256((tree.folder / name).read_bytes()).hexdigest()}  {name}"
        for name in ("a/first.cu", "b/second.cu", "common/shared.cuh")
    ]


def test_nothing_is_compiled_twice_and_nothing_is_stale(tree: Tree) -> None:
    assert tree.make("sm_75") == 2
    before = tree.compiled
    assert tree.make("sm_75") == 0
    assert tree.compiled == before
    assert tree.make("sm_80") == 2
    assert {"first.sm_75.xz", "first.sm_80.xz"} <= set(tree.compiled)
    # One file alone, then one that both include.
    with open(tree.folder / "a" / "first.cu", "a") as file:
        file.write("// changed\n")
    assert tree.make("sm_75") == 1
    assert set(tree.compiled) == {
        *("first.sm_75.xz", "second.sm_75.xz", "second.sm_80.xz", "sources")
    }
    (tree.folder / "common" / "shared.cuh").write_text("#define VALUE 8\n")
    assert tree.make("sm_75") == 2
    assert tree.compiled["first.sm_75.xz"] != before["first.sm_75.xz"]
    # What was there once is there still.
    (tree.folder / "common" / "shared.cuh").write_text("#define VALUE 7\n")
    assert tree.make("sm_75") == 0
    assert tree.compiled["second.sm_75.xz"] == before["second.sm_75.xz"]
    (tree.folder / "b" / "second.cu").unlink()
    assert tree.make("sm_75") == 0
    assert not any(name.startswith("second") for name in tree.compiled)


def test_compiled_has_the_images_of_the_target_alone(tree: Tree) -> None:
    machine_code = ("sm_80", "sm_86", "sm_120")
    assert tree.make(*machine_code, "sm_87", "sm_121", target="aarch64") == 10
    arm = tree.compiled
    assert set(arm) == {
        *("first.sm_80-86-87.xz", "first.sm_120-121.xz"),
        *("second.sm_80-86-87.xz", "second.sm_120-121.xz", "sources"),
    }
    assert tree.make(*machine_code, target="x86_64") == 0
    x86 = tree.compiled
    assert set(x86) == {
        *("first.sm_80-86.xz", "first.sm_120.xz"),
        *("second.sm_80-86.xz", "second.sm_120.xz", "sources"),
    }
    ours, theirs = images(x86["first.sm_80-86.xz"]), images(arm["first.sm_80-86-87.xz"])
    assert ours == theirs[:2]
    assert len(set(theirs)) == 3
    assert images(x86["first.sm_120.xz"]) == images(arm["first.sm_120-121.xz"])[:1]
    assert tree.make("sm_80", target="aarch64") == 0
    assert tree.compiled == arm


def test_a_python_without_liblzma_packs_by_gzip(tree: Tree) -> None:
    (tree.folder / "lzma.py").write_text("raise ImportError\n")
    assert tree.make("sm_75") == 2
    assert set(tree.compiled) == {"first.sm_75.gz", "second.sm_75.gz", "sources"}
    content = gzip.decompress(tree.compiled["first.sm_75.gz"])
    assert content[8:12] == b"\x7fELF"
    assert struct.unpack_from("<Q", content) == (len(content) - 8,)


def test_source_that_does_not_compile(tree: Tree) -> None:
    assert tree.make("sm_75") == 2
    (tree.folder / "b" / "second.cu").write_text(
        'extern "C" __global__ void second() { nonsense; }\n'
    )
    done = tree.run("sm_75")
    assert done.returncode == 1
    assert "b/second.cu for sm_75:" in done.stderr
    assert 'b/second.cu(1): error: identifier "nonsense" is undefined' in done.stderr
    assert "Traceback" not in done.stderr
    assert set(tree.compiled) == {"first.sm_75.xz", "sources"}


def test_warnings_are_shown(tree: Tree) -> None:
    (tree.folder / "a" / "first.cu").write_text(
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
    # Orin's is not for a machine of x86-64.
    done = tree.run("sm_87", target="x86_64")
    assert done.returncode == 1
    assert done.stderr.endswith("; got sm_87\n")


def test_unknown_target(tree: Tree) -> None:
    done = tree.run("sm_75", target="arm64")
    assert done.returncode == 1
    assert done.stderr == ("pygsampler: PYGSAMPLER_TARGET: expected x86_64 or aarch64, got arm64\n")


def test_nvrtc_knows_the_architectures_of_both_targets(root: Path, python: Path) -> None:
    code = """
import compile, ctypes
library = ctypes.CDLL(str(compile.nvrtc()))
count = ctypes.c_int()
library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
known = (ctypes.c_int * count.value)()
library.nvrtcGetSupportedArchs(known)
print(*sorted({compile.number(name) for name in compile.architectures()} - {*known}))
"""
    for target in ("x86_64", "aarch64"):
        env = {**os.environ, "PYGSAMPLER_TARGET": target}
        command = [python, "-c", code]
        done = subprocess.run(
            command, cwd=root / "kernels", env=env, capture_output=True, text=True, timeout=240
        )
        assert (done.stdout, done.stderr) == ("\n", "")


def test_no_nvrtc_says_how_to_get_it(root: Path) -> None:
    command = [sys.executable, "-I", "-S", str(root / "kernels" / "compile.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "pygsampler: no NVRTC; install it with: pip install nvidia-cuda-nvrtc-cu12==12.9.86\n"
    )


X86_64 = ("sm_75", "sm_80-86-89", "sm_90", "sm_100", "sm_120", "compute_75")
AARCH64 = ("sm_75", "sm_80-86-87-89", "sm_90", "sm_100-101-103", "sm_120-121", "compute_75")


def test_the_extension_has_every_kernel_for_every_architecture(
    extension: Path, root: Path, least_architectures: tuple[str, ...]
) -> None:
    content = extension.read_bytes()
    sources = sorted((root / "kernels").glob("*/*.cu"))
    assert "neighbor" in {source.stem for source in sources}
    every = AARCH64 if platform.machine() == "aarch64" else X86_64
    missing = [
        name
        for source in sources
        for group in least_architectures or every
        if (name := f"compiled/{source.stem}.{group}.").encode() not in content
    ]
    assert missing == []
