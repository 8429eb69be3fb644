"""The tests of tests/cuda that need neither torch nor CuPy on a device, on the emulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulator.build import ROOT

# The others move tensors of torch, which does not take the emulator for a GPU. One part takes about
# as long as the other, so that two workers share them.
PARTS = {
    "programs": ("programs",),
    "graphs and faults": (
        "faults",
        "flights",
        "interchange",
        "processes",
        "distribution",
        "edges",
        "graph_files",
        "named_arrays",
        "page_locks",
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
        "compiler",
        "parity",
        "reservoir",
        "commands",
        "shared_arrays",
    ),
}


# They take minutes, and see of the environment nothing but NumPy: once is enough.
@pytest.mark.once
@pytest.mark.parametrize(("part", "least"), [("programs", 120), ("graphs and faults", 440)])
def test_as_on_a_gpu(emulator: Path, part: str, least: int) -> None:
    assert passed_of(emulator, PARTS[part]) > least


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
