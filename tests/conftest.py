from __future__ import annotations

import gc
import importlib
import signal
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# Modules that tests share. At the end of the path: nothing in it may hide an installed package.
sys.path.append(str(Path(__file__).parent / "support"))
from partners import partner

# A shell that starts the tests in the background has them, and their children, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The engine is loaded, and its goroutines woken, inside the first example: no deadlines.
hypothesis.settings.register_profile("pygsampler", deadline=None, derandomize=True)
hypothesis.settings.load_profile("pygsampler")


def pytest_configure(config: pytest.Config) -> None:
    from tests.support import backends, companion

    config.pluginmanager.register(backends, "backends")
    companion.register(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Turns the garbage collector off while partners are imported and tests are collected.

    It would look at a million objects again and again, for a third of that time, and free none.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leaves what is there when tests begin out of all collections.

    Partners and collected tests are a million objects, all of which each call of gc.collect() in a
    test, and each collection of Python's own, would look at again.
    """
    leave_out_of_collections()
    seed_no_missing_devices()


def leave_out_of_collections() -> None:
    """Has later collections look at nothing that is there now."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Leaves what the tests of a file brought, too: compiled models are a million objects."""
    try:
        return (yield)
    finally:
        if nextitem is not None and nextitem.path != item.path:
            leave_out_of_collections()


def seed_no_missing_devices() -> None:
    """Has torch.manual_seed leave out devices that are not there.

    Torch would keep each seed for them, with the text of the stack, which takes a millisecond for
    each device: of the tests of layers a quarter. Torch is not asked for devices, since its answer
    initializes the driver, which forked children could not use any more.
    """
    if Path("/dev/nvidiactl").exists():
        return
    for name in ("cuda", "mtia", "xpu"):
        device = getattr(sys.modules.get("torch"), name, None)
        if device is not None:
            device.manual_seed_all = lambda seed: None


def pytest_unconfigure() -> None:
    """Gives it back: libraries that count what is left at the end would find all of it."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def torch_draws_the_same_numbers() -> None:
    """Seeds torch for each test, whatever ran before it."""
    if seed := getattr(sys.modules.get("torch"), "manual_seed", None):
        seed(0)


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Turns the garbage collector off: Ctrl-C in a callback that it runs would be lost."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., str]:
    """Runs a script in an interpreter of its own and returns what it printed."""

    def run(script: str, *, timeout: float = 240, ends_with: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == ends_with, done.stdout + done.stderr
        # What goes wrong in a destructor, or after the end, is only written there.
        assert not done.stderr
        return done.stdout

    return run


def quiet_import(name: str) -> Any:
    """A package whose import warns about packages of others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a libcuda.so.1 that runs the kernels on the CPU (tests/emulator)."""
    from tests.emulator.build import build, compilers
    from tests.gpu import INTERPRETERS
    from tests.support.interpreter import Interpreter

    if compilers() is None:
        pytest.skip("needs gcc and g++ (apt-get install g++)")
    folder = build(tmp_path_factory.mktemp("emulator"))
    INTERPRETERS[folder] = Interpreter(folder)
    yield folder
    INTERPRETERS.pop(folder).close()


@pytest.fixture(scope="session")
def dgl() -> Any:
    return partner("dgl")


@pytest.fixture(scope="session")
def torch_geometric() -> Any:
    return quiet_import("torch_geometric")
