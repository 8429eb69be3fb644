"""Packages and tools that a test needs, where they are installed."""

from __future__ import annotations

import os
import warnings
from typing import Any, NoReturn

import pytest


def partner(name: str) -> Any:
    """Returns the package, or skips the test. Warnings of its import are ignored."""
    # JAX would take three quarters of the GPU's memory from the tests after it.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"needs {name}")


def lack(requirement: str, reason: str) -> NoReturn:
    """Skips the test for a reason, or fails it where PYGSAMPLER_REQUIRE names the requirement."""
    if requirement in os.environ.get("PYGSAMPLER_REQUIRE", "").split(","):
        pytest.fail(f"PYGSAMPLER_REQUIRE names {requirement}: {reason}", pytrace=False)
    pytest.skip(reason)
