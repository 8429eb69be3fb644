"""The wheel for ARM under qemu-user: imported, sampled, forked, and compared with golden digests.

It needs an emulator, Debian's Python for ARM and the wheel. What is missing is said; nothing here
builds it, since it takes minutes.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.packaging.scripts import check_kernels, tool
from tests.support.partners import lack

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


class Emulated:
    """Python for ARM with the wheel's package, run by its command."""

    def __init__(self, command: list[str], path: list[Path]) -> None:
        self.command = command
        self.path = path

    def run(self, *arguments: str | Path) -> str:
        qemu, *rest = self.command
        variables = ["-E", f"PYTHONPATH={':'.join(map(str, self.path))}"]
        done = subprocess.run(
            [qemu, *variables, *rest, *arguments],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def arm_wheel() -> Path:
    wheels = list((ROOT / "wheelhouse").glob("pygsampler-*_aarch64.whl"))
    if not wheels:
        lack("aarch64", "needs a wheel for ARM: make wheels ARCH='x86_64 aarch64'")
    (wheel,) = wheels
    return wheel


@pytest.fixture(scope="module")
def arm(arm_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    if platform.machine() == "aarch64":
        pytest.skip("needs another machine: on ARM the tests run on it")
    pythons = tool("pythons")
    try:
        command = pythons.command()
    except SystemExit as missing:
        lack("aarch64", f"needs {missing}")
    package = tmp_path_factory.mktemp("arm")
    with zipfile.ZipFile(arm_wheel) as archive:
        archive.extractall(package)
    return Emulated(command, [package, pythons.PYTHONS / pythons.ARM / "site"])


def test_digests_are_those_of_x86_64(arm: Emulated) -> None:
    said = arm.run(ROOT / "tests" / "golden", "--check")
    assert re.match(r"\d{3} results on cpu as recorded; \d+ not run without .*torch", said), said


def test_import_loads_neither_engine_nor_driver(arm: Emulated) -> None:
    code = """
import sys, pygsampler
assert "pygsampler._engine._bridge" not in sys.modules and "numpy" not in sys.modules
text = open("/proc/self/maps").read()
print("_bridge" in text, "libcuda" in text)
"""
    assert arm.run("-W", "error", "-c", code).split() == ["False", "False"]


def test_forked_child_samples_the_same(arm: Emulated) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tools")!r})
import smoke
print(smoke.sample(), smoke.child())
print(*smoke.train())
"""
    ours, child, *losses = arm.run("-c", code).split()
    assert (ours, child) == (tool("smoke").sample(), ours)
    assert float(losses[-1]) < 0.9 * float(losses[0]), losses


def test_doctor_says_that_it_is_emulated(arm: Emulated) -> None:
    report = json.loads(arm.run("-m", "pygsampler", "doctor", "--json"))
    assert report["problems"] == []
    assert report["extension"]["architecture"] == "aarch64"
    assert report["machine"]["architecture"] == "aarch64"
    assert report["machine"]["emulated"] is True
    assert "emulated" in " ".join(report["notes"])


def test_extension_keeps_to_its_rules(
    arm_wheel: Path, tmp_path: Path, least_in_wheelhouse: tuple[str, ...]
) -> None:
    wheels = tool("wheels")
    with zipfile.ZipFile(arm_wheel) as archive:
        content = archive.read("pygsampler/_engine/_bridge.abi3.so")
    assert int.from_bytes(content[18:20], "little") == 183  # AArch64, in the header of ELF
    assert wheels.inspect(content, tmp_path / "extension.so") <= wheels.GLIBC
    check_kernels(content, "aarch64", least_in_wheelhouse)
