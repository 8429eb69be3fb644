"""The example learns the Debian graph, on a GPU where there is one and else on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.interpreter import prepared

pytestmark = pytest.mark.once

EXAMPLE = Path(__file__).parents[2] / "examples" / "graphsage_cuda.py"
pytest.importorskip("torch", reason="needs torch")
# An MLP that sees no edges reaches 60 % (docs/guide/debian.md); two epochs are beyond it already.
WITHOUT_EDGES = 0.6


def test_it_learns(tmp_path: Path) -> None:
    done = prepared().run_file(EXAMPLE, "--epochs", "2", scratch=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    found = re.search(r"test accuracy: ([\d.]+)%", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) / 100 > WITHOUT_EDGES
