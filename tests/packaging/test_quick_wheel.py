"""The wheel of make quickstart: the kernels of this machine, and never taken for the full one."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.once

PTX = ["compute_75"]
ALL = {
    "x86_64": ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", *PTX],
    "aarch64": [
        *("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90"),
        *("sm_100", "sm_101", "sm_103", "sm_120", "sm_121", *PTX),
    ],
}


# ---- the architectures of a machine ------------------------------------------------------------


@pytest.fixture
def script(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """kernels/compile.py on a machine of x86-64 without the driver's module."""
    monkeypatch.delenv("PYGSAMPLER_TARGET", raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    spec = importlib.util.spec_from_file_location("compile", root / "kernels" / "compile.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "MODULE", tmp_path / "version")
    return module


def driver(*devices: tuple[int, int], **status: int) -> SimpleNamespace:
    """The part of libcuda that is asked; a status stands for the function of that name."""

    def answer(name: str, place: Any, value: int) -> int:
        place._obj.value = value
        return status.get(name, 0)

    return SimpleNamespace(
        cuInit=lambda flags: status.get("cuInit", 0),
        cuDeviceGetCount=lambda count: answer("cuDeviceGetCount", count, len(devices)),
        cuDeviceGet=lambda device, index: answer("cuDeviceGet", device, index),
        cuDeviceGetAttribute=lambda value, attribute, device: answer(
            "cuDeviceGetAttribute", value, devices[device.value][{75: 0, 76: 1}[attribute]]
        ),
    )


def no_library(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([(9, 0)], ["sm_90", *PTX]),
        # Tegra, which runs no code of other GPUs.
        ([(8, 7)], PTX),
        ([(8, 7), (8, 9)], ["sm_89", *PTX]),
        ([(8, 0), (7, 5), (8, 0)], ["sm_75", "sm_80", *PTX]),
        ([(12, 1)], ["sm_120", *PTX]),
        # Newer than all, older than all: what a wheel with all of them has for such a device.
        ([(11, 0)], PTX),
        ([(6, 1)], PTX),
        ([], PTX),
    ],
)
def test_a_gpu_gets_what_it_would_get_of_all(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    devices: list[tuple[int, int]],
    expected: list[str],
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver(*devices))
    assert script.architectures() == ALL["x86_64"]
    assert script.native() == expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([(9, 0)], ["sm_90", *PTX]),
        ([(8, 7)], ["sm_87", *PTX]),
        ([(8, 6), (8, 8)], ["sm_86", *PTX]),
        ([(10, 0)], ["sm_100", *PTX]),
        ([(10, 1)], ["sm_101", *PTX]),
        ([(10, 2)], ["sm_100", *PTX]),
        ([(10, 3)], ["sm_103", *PTX]),
        ([(12, 1), (12, 0)], ["sm_120", "sm_121", *PTX]),
        # Thor under CUDA 13.
        ([(11, 0)], PTX),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_gpu_gets_what_it_would_get_of_all_on_arm(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    devices: list[tuple[int, int]],
    expected: list[str],
    named: bool,
) -> None:
    if named:
        monkeypatch.setenv("PYGSAMPLER_TARGET", "aarch64")
    else:
        monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver(*devices))
    assert script.architectures() == ALL["aarch64"]
    assert script.native() == expected


@pytest.mark.parametrize("function", ["cuInit", "cuDeviceGetCount", "cuDeviceGetAttribute"])
def test_all_where_the_driver_fails(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver((9, 0), **{function: 999}))
    assert script.native() == ALL["x86_64"]


@pytest.mark.parametrize("library", [no_library, lambda name: driver(cuInit=100)])
def test_all_where_a_gpu_is_hidden(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, library: Any
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", library)
    assert script.native() == PTX
    script.MODULE.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n")
    assert script.native() == ALL["x86_64"]


def test_the_driver_itself_is_asked(root: Path, emulator: Path) -> None:
    """The emulator's GPU has compute capability 9.0."""
    done = subprocess.run(
        [sys.executable, root / "kernels" / "compile.py", "--native"],
        env={**os.environ, "LD_LIBRARY_PATH": str(emulator)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["sm_90", *PTX]


# ---- what make does with them ------------------------------------------------------------------

# In the place of Python and pip: environments are folders, and a wheel says what it was made for.
PYTHON = """#!/bin/sh
case "$*" in
"-m venv --clear "*) mkdir -p "$4/bin" && cp "${0%/*}/python" "${0%/*}/pip" "$4/bin" ;;
*--native) echo $GPU compute_75 ;;
*quickstart) echo trained ;;
esac
"""
PIP = """#!/bin/sh
echo "pip $*" >>log
[ "$1" = wheel ] || exit 0
while [ "$1" != -w ]; do shift; done
case $3 in
*.whl) mkdir -p "$2" && cp "$3" "$2" ;;
*) mkdir -p "$2" && echo "${PYGSAMPLER_ARCHITECTURES:-all}" >"$2/pygsampler-0-cp3.whl" ;;
esac
"""


class Clone(SimpleNamespace):
    folder: Path
    python: Path

    def make(self, *arguments: str, **env: str) -> str:
        # The make that runs these tests hands its own options and variables down.
        theirs = re.findall(r"^(\w+) \?=", (self.folder / "Makefile").read_text(), re.M)
        above = {k: v for k, v in os.environ.items() if "MAKE" not in k and k not in theirs}
        done = subprocess.run(
            ["make", f"PYTHON={self.python}", *arguments],
            cwd=self.folder,
            env={**above, "GPU": "", **env},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def wheel(self, folder: str) -> str | None:
        """The architectures of the one wheel there."""
        wheels = list((self.folder / folder).glob("*.whl"))
        assert len(wheels) <= 1
        return wheels[0].read_text().strip() if wheels else None

    def log(self) -> str:
        """What pip was called with since the last time."""
        file = self.folder / "log"
        text = file.read_text() if file.exists() else ""
        file.unlink(missing_ok=True)
        return text

    def change(self) -> None:
        """A source that is newer than all that was made of it."""
        newest = max(file.stat().st_mtime for file in self.folder.rglob("made"))
        os.utime(self.folder / "go.mod", (newest + 1, newest + 1))


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Clone:
    """The repository as make sees it, without anything that takes long."""
    if shutil.which("make") is None:
        pytest.skip("needs make (apt-get install make)")
    folder, bin_ = tmp_path / "clone", tmp_path / "bin"
    for name in ("bridge", "gpu", "kernels", "pygsampler", "python"):
        (folder / name).mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "setup.py", "go.mod", "go.sum", "LICENSE"):
        shutil.copy(root / name, folder)
    (folder / "tests").mkdir()
    for file in (root / "tests").glob("requirements*.txt"):
        shutil.copy(file, folder / "tests")
    bin_.mkdir()
    for name, text in (("python", PYTHON), ("pip", PIP)):
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    return Clone(folder=folder, python=bin_ / "python")


def test_quickstart_leaves_nothing_where_the_full_wheel_belongs(clone: Clone) -> None:
    assert clone.make("quickstart", GPU="sm_90").splitlines()[-1] == "trained"
    assert clone.wheel("build/quick") == "sm_90 compute_75"
    assert not (clone.folder / "dist").exists()
    assert not (clone.folder / "wheelhouse").exists()
    log = clone.log()
    assert log.count("pip wheel") == 1
    assert "--no-deps --force-reinstall build/quick/pygsampler-0-cp3.whl" in log
    # Nothing is made again, as long as the GPUs are those.
    assert clone.make("quickstart", GPU="sm_90").splitlines()[-1] == "trained"
    assert clone.log() == ""
    clone.make("quickstart", GPU="sm_80")
    assert clone.wheel("build/quick") == "sm_80 compute_75"
    assert clone.log().count("pip install") == 1


@pytest.mark.parametrize("named", [{}, {"PYGSAMPLER_ARCHITECTURES": "sm_90"}])
def test_dist_has_all_after_a_quickstart(clone: Clone, named: dict[str, str]) -> None:
    clone.make("quickstart", **named)
    assert clone.wheel("build/quick") == "compute_75"
    clone.make("dist/made", **named)
    assert clone.wheel("dist") == "all"
    clone.log()
    clone.make(".venv-current/installed", **named)
    assert "build/quick" not in clone.log()
    assert clone.wheel("build/tested") == "sm_90 compute_75"


def test_quickstart_takes_the_wheel_of_dist_where_it_can(clone: Clone) -> None:
    clone.make("dist/made")
    clone.log()
    clone.make("quickstart")
    assert clone.wheel("build/quick") == "all"
    assert "-w build/quick ." not in clone.log()
    # Not one of older sources.
    clone.change()
    clone.make("quickstart")
    assert clone.wheel("build/quick") == "compute_75"
    assert clone.wheel("dist") == "all"


def test_tests_take_the_wheel_that_is_named(clone: Clone) -> None:
    clone.make("dist/made")
    named = clone.folder / "wheelhouse" / "pygsampler-0-abi3.whl"
    named.parent.mkdir()
    named.write_text("released\n")
    os.utime(named, (0, 0))
    clone.make(".venv-current/installed", f"WHEEL={named}")
    assert clone.wheel("dist") == "released"
    clone.log()
    clone.make(".venv-current/installed", f"WHEEL={named}")
    assert clone.log() == ""


def test_what_depends_on_no_partner_runs_with_the_current_ones_alone(clone: Clone) -> None:
    for env, more, chosen in (
        ("current", (), "-m 'not (slow)'"),
        ("classic", (), "-m 'not (once or slow)'"),
        ("current", ("SLOW=yes",), ""),
        ("classic", ("SLOW=yes",), "-m 'not (once)'"),
    ):
        line = clone.make("-n", "test-python", f"ENV={env}", *more).splitlines()[-1]
        assert line.rstrip().endswith(
            f".venv-{env}/bin/python -m pytest -n 3 --dist worksteal {chosen}".rstrip()
        ), line


def test_wheels_for_others_have_all(clone: Clone) -> None:
    for more, kernels in (((), ""), (("KERNELS=sm_80 sm_90",), "sm_80 sm_90")):
        line = clone.make("-n", "wheels", *more).splitlines()[-1]
        made = f"PYGSAMPLER_ARCHITECTURES='{kernels}' .venv-wheels/bin/python tools/wheels.py"
        assert line.startswith(made)


def test_a_build_that_fails_ends_it(clone: Clone) -> None:
    clone.make("quickstart")
    clone.log()
    shutil.rmtree(clone.folder / "build")
    pip = clone.folder / ".venv-quickstart" / "bin" / "pip"
    pip.write_text("#!/bin/sh\necho no compiler >&2\nexit 1\n")
    done = subprocess.run(
        ["make", f"PYTHON={clone.python}", "quickstart"],
        cwd=clone.folder,
        env={name: value for name, value in os.environ.items() if "MAKE" not in name},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 2
    assert "no compiler" in done.stderr
    assert "trained" not in done.stdout
