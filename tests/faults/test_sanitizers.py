"""The C part of the engine's memory under the sanitizers of gcc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "pygsampler" / "internal" / "memory"


def run(folder: Path, kind: str, *options: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    program = folder / "memory"
    parts = [HERE / "memory.c", *(SOURCES / name for name in ("memory.c", "python.c", "dlpack.c"))]
    command = ["gcc", "-O1", "-g", "-std=gnu11", f"-fsanitize={kind}", f"-I{SOURCES}", *options]
    made = subprocess.run(
        [*command, *map(str, parts), "-lpthread", "-o", str(program)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    if "cannot find" in made.stderr:
        pytest.skip(f"needs the library of gcc's -fsanitize={kind}")
    assert made.returncode == 0, made.stderr
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=240)


def test_addresses_leaks_and_undefined_behaviour(tmp_path: Path) -> None:
    done = run(tmp_path, "address,undefined", "-DGROW")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 0\n", "")


def test_races(tmp_path: Path) -> None:
    """Without growth: that sanitizer does not know mremap, and takes memory that has moved for
    memory of before."""
    done = run(tmp_path, "thread")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 0\n", "")


def test_a_read_beyond_a_block_is_noticed(tmp_path: Path) -> None:
    done = run(tmp_path, "address,undefined", "-DBEYOND=8")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
