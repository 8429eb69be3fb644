"""Random graphs with types and times, their contexts by the rule in NumPy, and a comparison."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import pygsampler as pgs

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks.numpy_contexts import Reference  # noqa: E402
from tests.support.assertions import assert_equal  # noqa: E402

NAMES = ("nodes", "types", "hops", "parents", "mask", "cells", "lengths")


class ContextGraph:
    """A random graph, and what it was made of.

    ``times`` is None, ``"edge"`` or ``"node"``. Edges of the last type, and nodes of the last node
    type, have no times. Some nodes have no edges, and some edges lead from a node to itself.
    """

    def __init__(self, seed: int, times: str | None, dtype: str = "int64", types: int = 3) -> None:
        random = np.random.default_rng(seed)
        self.random, self.times = random, times
        self.node_types = [f"n{i}" for i in range(types)]
        self.sizes = random.integers(1, 25, types)
        self.ends: dict[tuple[str, str, str], tuple[Any, Any]] = {}
        for i in range(2 * types):
            src, dst = random.integers(0, types, 2)
            if i == 0:
                dst = src
            count = int(random.integers(0, 4 * self.sizes[dst] + 2))
            popular = random.random(count) ** 2
            kind = self.node_types[src], f"r{i}", self.node_types[dst]
            self.ends[kind] = (
                random.integers(0, self.sizes[src], count),
                (popular * self.sizes[dst]).astype(np.int64),
            )
        values = np.arange(-4, 5) if "int" in dtype else np.arange(-4, 5) / 2
        draw = lambda count: random.choice(values, count).astype(dtype)  # noqa: E731
        self.edge_times = {kind: draw(len(e[0])) for kind, e in list(self.ends.items())[:-1]}
        last = max(types - 1, 1)
        self.node_times = {
            kind: draw(n) for kind, n in zip(self.node_types[:last], self.sizes[:last], strict=True)
        }
        self.dtype = dtype

    def graph(self, ids: str = "int64") -> pgs.Graph:
        """The graph, with ids of a dtype."""
        more: dict[str, Any] = {}
        if self.times == "edge":
            more["edge_data"] = {kind: {"t": t} for kind, t in self.edge_times.items()}
        if self.times == "node":
            more["node_data"] = {kind: {"t": t} for kind, t in self.node_times.items()}
        ends = {kind: tuple(e.astype(ids) for e in ends) for kind, ends in self.ends.items()}
        sizes = dict(zip(self.node_types, map(int, self.sizes), strict=True))
        return pgs.Graph.from_coo(ends, num_nodes=sizes, **more)

    def reference(self) -> Reference:
        """The same for the rule in NumPy."""
        edges = []
        for kind, (src, dst) in self.ends.items():
            time = None
            if self.times == "edge":
                time = self.edge_times.get(kind)
            elif self.times == "node" and kind[0] in self.node_times:
                time = self.node_times[kind[0]][src]
            places = [self.node_types.index(end) for end in kind[::2]]
            edges.append((*places, src, dst, time))
        return Reference(self.sizes, edges)

    def seeds(self, count: int) -> tuple[dict[str, Any], Any, Any]:
        """Seeds by type, and as the rule in NumPy has them: nodes and their types."""
        kinds = np.sort(self.random.integers(0, len(self.node_types), count))
        nodes = self.random.integers(0, self.sizes[kinds])
        by_type = {
            name: nodes[kinds == place]
            for place, name in enumerate(self.node_types)
            if (kinds == place).any()
        }
        return by_type, nodes, kinds

    def bounds(self, kinds: Any) -> tuple[dict[str, Any] | None, Any]:
        """A time for each seed, by type and one behind another; None without times."""
        if self.times is None:
            return None, None
        values = self.random.integers(-5, 6, len(kinds)).astype(self.dtype)
        if self.times == "node" and not any(kind[0] in self.node_times for kind in self.ends):
            # No edge has a time, so that seeds' are integers.
            values = values.astype(np.int64)
        by_type = {
            name: values[kinds == place]
            for place, name in enumerate(self.node_types)
            if (kinds == place).any()
        }
        return by_type, values


def assert_same(contexts: Any, expected: Mapping[str, Any], types: bool = True) -> None:
    """Asserts that contexts have the arrays that the rule in NumPy gives."""
    found = contexts.numpy()
    for name in NAMES:
        if name == "types" and not types:
            assert found.types is None
            continue
        array = getattr(found, name)
        if expected[name] is None:
            assert array is None
        else:
            np.testing.assert_array_equal(array, expected[name], err_msg=name)


def assert_equal_contexts(found: Any, wanted: Any, where: object = "") -> None:
    """Fails unless two batches, whatever their numbers, have the same contexts."""
    mine, theirs = ({name: getattr(each, name) for name in NAMES} for each in (found, wanted))
    assert_equal(mine, theirs, where)
