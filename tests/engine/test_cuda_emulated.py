"""The tests of tests/cuda that need neither torch nor CuPy on a device, on the emulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.build import ROOT

# The others move tensors of torch, which does not take the emulator for a GPU. Each half takes
# about as long as the other, and they run side by side.
MODULES = (
    (
        "faults",
        "flights",
        "interchange",
        "processes",
        "distribution",
        "edges",
        "graph_files",
        "named_arrays",
        "names",
        "transit",
        "khop",
        "hetero",
        "hetero_labor",
        "temporal",
        "partitioned_rows",
        "walk_programs",
        "weights",
        "walks",
        "walk_relations",
        "edge_weights",
    ),
    (
        "programs",
        "compiler",
        "parity",
        "reservoir",
        "commands",
        "shared_arrays",
    ),
)


# They take minutes, and see of the environment nothing but NumPy: once is enough.
@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="needs NumPy 2")
def test_as_on_a_gpu(emulator: Path) -> None:
    with ThreadPoolExecutor() as pool:
        passed = list(pool.map(lambda half: passed_of(emulator, half), MODULES))
    assert min(passed) > 75, passed


def passed_of(emulator: Path, modules: tuple[str, ...]) -> int:
    """How many of the tests in these files pass; none may fail."""
    files = [f"tests/cuda/test_{name}.py" for name in modules]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(emulator),
            "PYGSAMPLER_NVRTC": str(emulator / "libnvrtc.so.12"),
            "PYGSAMPLER_REQUIRE": "cuda",
        },
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    return int(passed[1])
