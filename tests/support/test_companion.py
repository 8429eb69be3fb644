"""Tests on the emulator run in a companion of pytest, which a crash, a hang or an end ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.build import ROOT, build, compilers

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(compilers() is None, reason="needs gcc and g++ (apt-get install g++)"),
]

CONFTEST = """
from tests.support import backends, companion

def pytest_configure(config):
    config.pluginmanager.register(backends, "backends")
    companion.register(config, limit=3)
"""
TESTS = """
import os, time
import pytest
import pygsampler as pgs

pytestmark = pytest.mark.backends("cpu", "emulator")
emulator = pytest.mark.backends("emulator")

@pytest.fixture(scope="module")
def of_module(backend):
    return [backend]

def test_devices(backend, device, of_module):
    of_module.append("first")
    assert (device == "cuda") == (backend == "emulator")
    if backend == "emulator":
        assert pgs.cuda.device_name(0).startswith("Emulated")
    assert pgs.Graph.from_csc([0, 1], [0]).to(device).device.startswith(device)

def test_of_the_next_has_what_its_module_made(backend, of_module):
    assert of_module == [backend, "first"]

@emulator
def test_fails(backend):
    assert backend == "another"

@emulator
def test_skips(backend):
    pytest.skip("a reason")

@emulator
def test_ends(backend):
    os.write(2, b"its last words\\n")
    os._exit(3)

@emulator
def test_hangs(backend):
    time.sleep(1000)

@emulator
def test_after_them(backend, of_module):
    assert of_module == ["emulator"]
"""
WAITS = """
import os, pathlib, pytest, time

pytestmark = pytest.mark.backends("emulator")

def test_waits(backend):
    pathlib.Path("pid.part").write_text(str(os.getpid()))
    os.rename("pid.part", "pid")
    time.sleep(1000)
"""


def command(folder: Path, tests: str, *options: str) -> list[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(tests)
    (folder / "test_then.py").write_text("def test_another_module():\n    pass\n")
    plain = ["-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider", "-rA"]
    return [sys.executable, "-m", "pytest", *plain, *options, "test_some.py", "test_then.py"]


def environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return own | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["one process", "a worker"])
def test_reports_are_those_of_the_companion(tmp_path: Path, options: list[str]) -> None:
    if options:
        pytest.importorskip("xdist", reason="needs pytest-xdist")
    done = subprocess.run(
        command(tmp_path, TESTS, *options),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    passed, failed = (
        set(re.findall(rf"(?m)^{end} test_\w+.py::test_(\S+)", done.stdout))
        for end in ("PASSED", "FAILED")
    )
    assert "ERROR test_" not in done.stdout, done.stdout
    kept = "of_the_next_has_what_its_module_made"
    assert passed == {
        *(f"{name}[{backend}]" for name in ("devices", kept) for backend in ("cpu", "emulator")),
        "after_them[emulator]",
        "another_module",
    }, done.stdout
    assert failed == {"fails[emulator]", "ends[emulator]", "hangs[emulator]"}, done.stdout
    assert re.search(r"SKIPPED \[1\] .*: a reason", done.stdout)
    assert "assert 'emulator' == 'another'" in done.stdout
    assert "companion: ended with status 3; it wrote:\nits last words\n" in done.stdout
    assert "companion: expected an answer within 3 seconds; it wrote:\n" in done.stdout
    # The companion that hangs writes its traceback.
    assert "in test_hangs" in done.stdout


def until(happens: Iterator[bool]) -> None:
    deadline = time.monotonic() + 120
    while not next(happens):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_companion_ends_with_its_parent(tmp_path: Path, end: signal.Signals) -> None:
    build(tmp_path / "emulator")  # before the deadline of what follows: it may compile for minutes
    parent = subprocess.Popen(
        command(tmp_path, WAITS),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        told = tmp_path / "pid"
        until(iter(told.exists, None))
        companion = int(told.read_text())
        assert running(companion) and companion != parent.pid
        parent.send_signal(end)
        assert parent.wait(120) == (2 if end == signal.SIGINT else -end)
        until(iter(lambda: not running(companion), None))
    finally:
        parent.kill()
        parent.wait()
