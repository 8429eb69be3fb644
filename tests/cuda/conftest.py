"""Tests that need a GPU, or the emulator of tests/emulator in its place.

They need pytest and NumPy; what else a test needs it asks for. Run as in tools/gpu_check.sh they
do without the conftest of the folder above, which wants hypothesis.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import need_cuda
from tests.support.parity import emulated
from tests.support.partners import partner

ROOT = Path(__file__).parents[2]
# As the conftest of the folder above does.
sys.path.append(str(ROOT / "tests" / "support"))


@pytest.fixture(autouse=True, scope="session")
def cuda() -> None:
    # Of the session: before fixtures of modules that use the device.
    need_cuda()


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


def torch_on_cuda() -> Any:
    """torch, where it uses the device."""
    if emulated():
        pytest.skip("needs a GPU: torch does not take the emulator for one")
    torch = partner("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a torch that is built for CUDA")
    return torch


@pytest.fixture
def torch() -> Any:
    return torch_on_cuda()
