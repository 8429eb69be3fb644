"""Tests with DGL, which has no wheel for some versions of Python: there its tests are skipped."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

import pytest


class _WithoutDGL(pytest.Module):
    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        pytest.skip("needs dgl", allow_module_level=True)


if importlib.util.find_spec("dgl") is None:

    def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
        """Skips each module of this folder with the reason, instead of failing at its import."""
        module: pytest.Module = _WithoutDGL.from_parent(parent, path=module_path)
        return module
