"""Checks of tools/wheels.py; `make wheels` shows that it makes wheels."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pygsampler._cli.doctor import environment
from tests.packaging.scripts import check_kernels, tool

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    return tool("wheels")


def test_unknown_architectures_are_refused(root: Path) -> None:
    command = [sys.executable, str(root / "tools" / "wheels.py"), "x86_64", "riscv64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stderr == "wheels: ARCH: expected x86_64 or aarch64, got riscv64\n"


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
    with pytest.raises(SystemExit, match=r"wheels: expected symbols up to glibc 2\.1, got"):
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


def test_rules_that_stand_in_two_places_are_equal(wheels: ModuleType, root: Path) -> None:
    code = (
        "import sys, setup; sys.path.insert(0, 'kernels'); import compile;"
        "print(*setup.ABI, '-', *sorted(setup.TARGETS), '-', *sorted(compile.TARGETS))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    oldest, targets, compiled = done.stdout.strip().split(" - ")
    assert targets.split() == compiled.split() == sorted(wheels.ARCHITECTURES)
    assert oldest == f"{environment._OLDEST}".replace(".", " ")


def test_images_are_those_that_every_kernel_has(
    wheels: ModuleType, extension: Path, least_architectures: tuple[str, ...]
) -> None:
    content = b"\0compiled/a.sm_80-86.xz\0compiled/a.compute_75.xz compiled/b.sm_80.xz.."
    assert wheels.kernel_images(content) == {"a.sm_80", "a.sm_86", "a.compute_75", "b.sm_80"}
    assert wheels.images(content) == ["sm_80"]
    check_kernels(extension.read_bytes(), os.uname().machine, least_architectures)
