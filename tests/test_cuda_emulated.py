"""The tests of tests/cuda that need neither torch nor CuPy on a device, on the emulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.emulator.build import ROOT

# The others move tensors of torch, which does not take the emulator for a GPU.
MODULES = (
    "parity",
    "reservoir",
    "flights",
    "interchange",
    "faults",
    "processes",
    "distribution",
    "edges",
    "graph_files",
    "graph_data",
    "transit",
    "khop",
    "weights",
    "walks",
    "walk_forms",
    "edge_weights",
    "commands",
    "compiler",
    "programs",
    "typed",
)


def test_as_on_a_gpu(emulator: Path) -> None:
    files = [f"tests/cuda/test_{name}.py" for name in MODULES]
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
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 150, done.stdout
