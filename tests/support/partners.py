"""Packages that a test shares arrays with, where they are installed."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest


def partner(name: str) -> Any:
    """The package, or the test is skipped. What its import warns of is not ours."""
    # JAX would take three quarters of the GPU's memory from the tests after it.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"needs {name}")
