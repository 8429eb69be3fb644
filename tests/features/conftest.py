from __future__ import annotations

from pathlib import Path
from typing import Any

import feature_bytes
import numpy as np
import pytest

import pygsampler as pgs


@pytest.fixture
def points() -> np.ndarray[Any, Any]:
    return feature_bytes.points()


@pytest.fixture
def features(points: np.ndarray[Any, Any]) -> pgs.Features:
    return pgs.Features.from_tensor(points)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.pgs"
