"""A small graph with all that a graph may have."""

from __future__ import annotations

import numpy as np

NODES = 500


def edges() -> tuple[np.ndarray, np.ndarray]:
    """A skewed graph with self loops, parallel edges, and vertices without edges at the end."""
    random = np.random.default_rng(3)
    src = (random.random(6000) ** 3 * (NODES - 20)).astype(np.int64)
    dst = random.integers(0, NODES - 20, 6000)
    return src, dst
