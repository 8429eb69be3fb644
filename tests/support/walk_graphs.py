"""Graphs to walk on, with the arrays that walks are drawn by, and their walks by the reference."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import reference_walks as reference

import pygsampler as pgs

TYPES = 3
# The values that weights are drawn from: the zeros leave edges, and whole rows, out.
WEIGHTS = [0.0, 0.0, 1.0, 2.5, 1e-3, 7.0]


@dataclass
class Shape:
    """The CSC of a graph, and for each edge id a weight and a type."""

    indptr: list[int]
    indices: list[int]
    num_nodes: int
    edge_ids: list[int] | None = None
    weights: list[float] = field(default_factory=list)
    types: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw = random.Random(len(self.indices))
        top = 1 + max(self.edge_ids or range(len(self.indices)), default=-1)
        # Ids that no edge has are of a weight and a type, too.
        self.weights = [draw.choice(WEIGHTS) for _ in range(top)]
        self.types = [draw.randrange(TYPES) for _ in range(top)]

    def graph(self, bits: int = 64) -> pgs.Graph:
        import numpy as np

        ids = None if self.edge_ids is None else np.array(self.edge_ids, f"int{bits}")
        return pgs.Graph.from_csc(
            np.array(self.indptr, f"int{bits}"),
            np.array(self.indices, f"int{bits}"),
            edge_ids=ids,
            num_nodes=self.num_nodes,
            edge_data={
                "w": np.array(self.weights, np.float64),
                "t": np.array(self.types, np.int16),
            },
        )

    def walks(self, seeds: list[int], options: dict[str, Any], **numbers: int) -> reference.Walks:
        """Returns the expected walks of ``RandomWalk(**options)`` from these seeds."""
        rules = dict(options)
        length = rules.pop("length")
        per_seed = rules.pop("walks_per_seed", 1)
        form = reference.Form(
            self.indptr,
            self.indices,
            edge_ids=self.edge_ids,
            weights=self.weights if rules.pop("prob", None) else None,
            types=self.types if rules.pop("edge_types", None) else None,
            direction=rules.pop("direction", "out"),
            second=(rules.get("p", 1), rules.get("q", 1)) != (1, 1),
        )
        walker = reference.Walker(form, length, **rules)
        return reference.walks(walker, seeds, walks_per_seed=per_seed, **numbers)


def of_rows(rows: list[list[int]], num_nodes: int, ids: str = "none") -> Shape:
    """Row v lists the in-neighbours of v; ids are ``"none"``, ``"mixed"`` or have ``"gaps"``."""
    indptr = [0]
    for row in rows:
        indptr.append(indptr[-1] + len(row))
    indices = [u for row in rows for u in row]
    draw = random.Random(5)
    count = len(indices)
    given = {"none": None, "mixed": range(count), "gaps": range(3 * count)}[ids]
    edge_ids = None if given is None else draw.sample(given, count)
    return Shape(indptr, indices, num_nodes, edge_ids)


def scattered(num_nodes: int, most: int, seed: int, rows: int | None = None) -> list[list[int]]:
    draw = random.Random(seed)
    return [
        [draw.randrange(num_nodes) for _ in range(draw.choice([0, 0, 1, 2, most]))]
        for _ in range(num_nodes if rows is None else rows)
    ]


def shapes() -> dict[str, Shape]:
    """Every kind of row that walks may come to."""
    n = 24
    near = [[u for u in range(12) if abs(u - v) in (0, 1, 3)] for v in range(12)]
    return {
        "scattered": of_rows(scattered(40, 9, 1), 40),
        "ids": of_rows(scattered(40, 9, 2), 40, "mixed"),
        "gaps": of_rows(scattered(40, 9, 3), 40, "gaps"),
        "fewer rows": of_rows(scattered(40, 9, 4, rows=25), 40, "mixed"),
        "symmetric": of_rows(near, 12),
        "loops": of_rows([[v] * (v % 3) + [(v + 1) % 9] for v in range(9)], 9),
        "parallel": of_rows([[(v + 1) % 9] * 4 + [(v + 2) % 9] * 3 for v in range(9)], 9, "mixed"),
        "two ways": of_rows([[(v + 1) % 9, (v - 1) % 9] * 3 for v in range(9)], 9),
        "path": of_rows([[], *([v] for v in range(n - 1))], n),
        "star": of_rows([list(range(1, n)), *([0] for _ in range(1, n))], n),
        "one vertex": of_rows([[0, 0, 0]], 1),
        "no edges": of_rows([[]] * 5, 5),
        "no rows": of_rows([], 5),
    }


# A row of node2vec that hardly any try gets out of: what is left open is drawn exactly.
HARD = {
    "length": 20,
    "p": 1e30,
    "q": 1e30,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"length": 9},
    "no steps": {"length": 0},
    "several": {"length": 6, "walks_per_seed": 4},
    "stop": {"length": 9, "stop": 0.2},
    "stop at once": {"length": 5, "stop": 1.0},
    "restart": {"length": 9, "restart": 0.3},
    "jumps": {"length": 9, "restart": 0.3, "count_jumps": True},
    "restart always": {"length": 5, "restart": 1.0, "count_jumps": True},
    "stop and restart": {"length": 12, "stop": 0.1, "restart": 0.2},
    "metapath": {"length": 7, "metapath": [1, 0, 2]},
    "metapath, jumps": {"length": 9, "metapath": [2, 0], "restart": 0.2, "count_jumps": True},
    "return": {"length": 9, "p": 0.25, "q": 4.0},
    "far": {"length": 9, "p": 4.0, "q": 0.25},
    "common": {"length": 9, "p": 4.0, "q": 3.0},
    "back and far": {"length": 9, "p": 0.1, "q": 0.5},
    "second, all": {
        "length": 12,
        "p": 0.25,
        "q": 0.5,
        "stop": 0.05,
        "restart": 0.1,
        "count_jumps": True,
        "walks_per_seed": 2,
    },
    "second, metapath": {"length": 8, "p": 0.5, "q": 3.0, "metapath": [0, 1]},
    "hard": HARD,
}


def settings() -> dict[str, dict[str, Any]]:
    """The options along and against the edges, evenly and by weight."""
    found = {}
    for name, options in OPTIONS.items():
        for direction in ("out", "in"):
            for prob in (None, "w"):
                given = dict(options)
                if "metapath" in given:
                    given["edge_types"] = "t"
                if prob:
                    given["prob"] = prob
                if direction == "in":
                    given["direction"] = "in"
                found[f"{name}, {direction}, {prob}"] = given
    return found
