"""Tests that compare a device with the CPU, on a GPU and on the emulator of tests/emulator.

They need pytest and NumPy; what else a test needs it asks for. Run as in tools/gpu_check.sh they
do without the conftest of the folder above, which wants hypothesis, and without the emulator.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.parity import emulated, random_graph
from tests.support.partners import partner

ROOT = Path(__file__).parents[2]
# The number of nodes of the graph of ``batches``.
NODES = 20_000


@pytest.fixture(autouse=True, scope="module")
def cuda(backend: str) -> None:
    """The test needs a device, before fixtures of its module use it."""


@pytest.fixture
def run_script() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python in a process of its own, which imports what this one does."""

    def run(script: str, *, timeout: float = 240, **variables: str) -> Any:
        path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            env={**os.environ, "PYTHONPATH": path, **variables},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture(scope="module")
def torch(cuda: None) -> Any:
    """torch, where it uses the device. Tests that name it do not run on the emulator."""
    if emulated():
        pytest.skip("needs a GPU: torch does not take the emulator for one")
    torch = partner("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a torch that is built for CUDA")
    return torch


@pytest.fixture
def gpu(torch: Any) -> Iterator[None]:
    """A GPU that torch uses; what a test has put there is done before the next one begins."""
    yield
    torch.cuda.synchronize()


@pytest.fixture
def deterministic(torch: Any) -> Iterator[None]:
    """Torch refuses what it has only with atomics."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def batches(torch: Any) -> dict[int, tuple[Any, Any]]:
    """A batch on the CPU and the same on the GPU, in torch's tensors, by the width of its ids."""
    made = {}
    for bits in (32, 64):
        graph = random_graph(NODES, seed=5).graph(bits)
        sampler = pgs.PGSampler([10, 6], seed=3)
        seeds = np.arange(0, NODES, 23)
        mine = sampler.sample(graph, seeds, batch=1).torch()
        theirs = sampler.sample(graph.to("cuda"), seeds, batch=1).torch()
        made[bits] = mine, theirs
    return made
