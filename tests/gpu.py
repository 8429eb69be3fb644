"""What tests share that need a GPU, or a driver that only pretends to have one.

A test that needs a GPU calls :func:`need_cuda` first. Without one it is skipped, with the reason;
with ``cuda`` in the comma-separated list PYGSAMPLER_REQUIRE it fails instead, so that a machine
that is there for these tests cannot pass without running them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pygsampler as pgs
from tests.support.interpreter import Interpreter
from tests.support.partners import lack

FAKE_DRIVER = Path(__file__).parents[1] / "gpu" / "shim" / "testdata" / "fake_libcuda.c"
# By the folders of their drivers.
INTERPRETERS: dict[Path, Interpreter] = {}


def need_cuda(devices: int = 1) -> None:
    """Skips the calling test where there are fewer CUDA devices, or fails it where so many are
    required: by ``cuda``, and by ``cuda2`` for two."""
    wanted = "a CUDA device" if devices == 1 else f"{devices} CUDA devices"
    try:
        found = pgs.cuda.device_count()
        if found >= devices:
            return
        reason = f"needs {wanted}, found {found or 'none'}"
    except pgs.errors.CudaError as error:
        reason = f"needs {wanted}, found a driver that fails: {error}"
    lack("cuda" if devices == 1 else f"cuda{devices}", reason)


def fake_driver(folder: Path, *flags: str) -> Path:
    """Compiles the fake libcuda.so.1 into ``folder``, and returns the folder."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    library = folder / "libcuda.so.1"
    subprocess.run(
        [*compiler, *flags, "-shared", "-fPIC", "-o", str(library), str(FAKE_DRIVER)], check=True
    )
    return folder


def no_driver(folder: Path) -> Path:
    """Makes ``folder`` one where the search for a driver ends, on machines with one, too.

    The dynamic linker does not look past a file of the right name that is no library.
    """
    (folder / "libcuda.so.1").touch()
    return folder


def run_with_driver(driver: Path, code: str, **variables: str) -> str:
    """Returns what a fresh interpreter prints that runs ``code`` with the driver in a folder.

    A driver that emulates a GPU has an NVRTC of its own, beside which torch may bring the real one.
    """
    if (own := driver / "libnvrtc.so.12").exists():
        variables = {"PYGSAMPLER_NVRTC": str(own), **variables}
    ready = INTERPRETERS.get(driver)
    if ready is not None and ready.takes(variables):
        with tempfile.TemporaryDirectory() as scratch:
            done = ready.run(code, Path(scratch), timeout=240, **variables)
    else:
        environment = {**os.environ, **variables, "LD_LIBRARY_PATH": str(driver)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return done.stdout
